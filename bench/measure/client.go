package measure

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// Client is connections that send given requests one after another, for what wrk cannot
// do: to warm a server with so many requests, and to ask for each id exactly once.
type Client struct {
	addr  string
	conns []*conn
}

type conn struct {
	net.Conn
	in   *bufio.Reader
	resp fasthttp.Response
}

// Outcome is what became of requests.
type Outcome struct {
	Latencies []time.Duration // ascending
	Failed    int             // not 200, or no answer
	Degraded  int             // 200, but something is left out of it
}

// Dial opens n connections.
func Dial(addr string, n int) (*Client, error) {
	l := &Client{addr: addr}
	for range n {
		c, err := newConn(addr)
		if err != nil {
			l.Close()
			return nil, err
		}
		l.conns = append(l.conns, c)
	}
	return l, nil
}

func newConn(addr string) (*conn, error) {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, in: bufio.NewReaderSize(c, 32<<10)}, nil
}

// Close closes all connections.
func (l *Client) Close() {
	for _, c := range l.conns {
		_ = c.Close()
	}
}

// Send sends each request once, and goes round until atLeast has passed. A request without
// an answer for ten seconds has failed. When ctx ends, Send returns its error.
func (l *Client) Send(ctx context.Context, requests [][]byte, atLeast time.Duration) (Outcome, error) {
	var (
		next  atomic.Int64
		mu    sync.Mutex
		total Outcome
		fatal error
		wg    sync.WaitGroup
		start = time.Now()
	)
	deadline, ends := ctx.Deadline()
	for i := range l.conns {
		wg.Go(func() {
			var o Outcome
			var err error
			for err == nil {
				n := int(next.Add(1) - 1)
				if n >= len(requests) && time.Since(start) >= atLeast {
					break
				}
				if err = ctx.Err(); err != nil {
					break
				}
				by := time.Now().Add(patience)
				if ends && deadline.Before(by) {
					by = deadline
				}
				err = l.one(i, requests[n%len(requests)], by, &o)
			}
			mu.Lock()
			defer mu.Unlock()
			total.Latencies = append(total.Latencies, o.Latencies...)
			total.Failed += o.Failed
			total.Degraded += o.Degraded
			if err != nil {
				fatal = err
			}
		})
	}
	wg.Wait()
	if ends && !time.Now().Before(deadline) {
		<-ctx.Done() // a connection may have seen that before the context did
	}
	slices.Sort(total.Latencies)
	return total, cmp.Or(ctx.Err(), fatal)
}

// one sends one request on a connection, which it replaces where it breaks.
func (l *Client) one(i int, request []byte, by time.Time, o *Outcome) error {
	c := l.conns[i]
	start := time.Now()
	err := c.SetDeadline(by)
	if err == nil {
		_, err = c.Write(request)
	}
	if err == nil {
		err = c.resp.Read(c.in)
	}
	o.Latencies = append(o.Latencies, time.Since(start))
	switch {
	case err != nil:
		o.Failed++
		_ = c.Close()
		if l.conns[i], err = newConn(l.addr); err != nil {
			l.conns[i] = c
			return err
		}
	case c.resp.StatusCode() != fasthttp.StatusOK:
		o.Failed++
	case bytes.Contains(c.resp.Body(), []byte(`"degraded":`)): // no string of a user can have the quotes
		o.Degraded++
	}
	return nil
}

// Request writes a request as a Client sends it. An empty method is GET.
func Request(method, target, body string) []byte {
	method = cmp.Or(method, http.MethodGet)
	if body == "" {
		return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: bench\r\n\r\n", method, target)
	}
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, target, len(body), body)
}

// Percentile returns the value that part of all, from 0 to 1, do not exceed.
func Percentile(ascending []time.Duration, part float64) time.Duration {
	if len(ascending) == 0 {
		return 0
	}
	return ascending[min(int(part*float64(len(ascending))), len(ascending)-1)]
}
