package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// load is connections that send one request after another. wrk cannot ask for each id
// exactly once.
type load struct {
	addr  string
	conns []*conn
}

type conn struct {
	net.Conn
	in   *bufio.Reader
	resp fasthttp.Response
}

// outcome is what became of requests.
type outcome struct {
	latencies []time.Duration // ascending
	failed    int             // not 200, or no answer
	degraded  int             // 200, but something is left out of it
}

func dial(addr string, n int) (*load, error) {
	l := &load{addr: addr}
	for range n {
		c, err := newConn(addr)
		if err != nil {
			l.close()
			return nil, err
		}
		l.conns = append(l.conns, c)
	}
	return l, nil
}

func newConn(addr string) (*conn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, in: bufio.NewReaderSize(c, 32<<10)}, nil
}

func (l *load) close() {
	for _, c := range l.conns {
		_ = c.Close()
	}
}

// send sends each request once, and goes round until atLeast has passed.
func (l *load) send(requests [][]byte, atLeast time.Duration) (outcome, error) {
	var (
		next  atomic.Int64
		mu    sync.Mutex
		total outcome
		fatal error
		wg    sync.WaitGroup
		start = time.Now()
	)
	for i := range l.conns {
		wg.Go(func() {
			var o outcome
			var err error
			for err == nil {
				n := int(next.Add(1) - 1)
				if n >= len(requests) && time.Since(start) >= atLeast {
					break
				}
				err = l.one(i, requests[n%len(requests)], &o)
			}
			mu.Lock()
			defer mu.Unlock()
			total.latencies = append(total.latencies, o.latencies...)
			total.failed += o.failed
			total.degraded += o.degraded
			if err != nil {
				fatal = err
			}
		})
	}
	wg.Wait()
	slices.Sort(total.latencies)
	return total, fatal
}

// one sends one request on a connection, which it replaces where it breaks.
func (l *load) one(i int, request []byte, o *outcome) error {
	c := l.conns[i]
	start := time.Now()
	_, err := c.Write(request)
	if err == nil {
		err = c.resp.Read(c.in)
	}
	o.latencies = append(o.latencies, time.Since(start))
	switch {
	case err != nil:
		o.failed++
		_ = c.Close()
		if l.conns[i], err = newConn(l.addr); err != nil {
			l.conns[i] = c
			return err
		}
	case c.resp.StatusCode() != fasthttp.StatusOK:
		o.failed++
	case bytes.Contains(c.resp.Body(), []byte(`"degraded":`)): // no string of a user can have the quotes
		o.degraded++
	}
	return nil
}

// requestsFor returns requests for size ids each, in their order. What is left over is
// left out.
func requestsFor(ids []int64, size int) [][]byte {
	requests := make([][]byte, 0, len(ids)/size)
	for chunk := range slices.Chunk(ids, size) {
		if len(chunk) == size {
			requests = append(requests, fmt.Appendf(nil, "GET /api/users?ids=%s HTTP/1.1\r\nHost: bench\r\n\r\n", list(chunk)))
		}
	}
	return requests
}

// list writes ids as the API wants them.
func list(ids []int64) string {
	var text []byte
	for i, id := range ids {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, id, 10)
	}
	return string(text)
}

// percentile returns the value that part of all, from 0 to 1, do not exceed.
func percentile(ascending []time.Duration, part float64) time.Duration {
	if len(ascending) == 0 {
		return 0
	}
	return ascending[min(int(part*float64(len(ascending))), len(ascending)-1)]
}
