package openloop

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

const good = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

// serve gives each connection to handle, and closes it after that.
func serve(t *testing.T, handle func(c *net.TCPConn)) (url string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	closed := false
	wait.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			if closed {
				_ = c.Close()
			}
			open[c] = true
			mu.Unlock()
			wait.Go(func() {
				handle(c.(*net.TCPConn))
				_ = c.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		mu.Lock()
		closed = true
		for c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wait.Wait()
	})
	return "http://" + ln.Addr().String() + "/"
}

// each answers every request of a connection with what reply says, until that is "".
func each(reply func(n int, r *http.Request) string) func(*net.TCPConn) {
	return func(c *net.TCPConn) {
		in := bufio.NewReader(c)
		for n := 0; ; n++ {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
			text := reply(n, r)
			if text == "" {
				return
			}
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	}
}

func always(text string) func(*net.TCPConn) {
	return each(func(int, *http.Request) string { return text })
}

func mustRun(t *testing.T, c Config) *Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := Run(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Histogram.TotalCount() != r.Due {
		t.Errorf("%d in the histogram, %d were due", r.Histogram.TotalCount(), r.Due)
	}
	if r.Seconds < c.Duration.Seconds() {
		t.Errorf("took %v s, less than the duration", r.Seconds)
	}
	return r
}

// slower returns how many requests took at least d.
func slower(r *Result, d time.Duration) (n int64) {
	for _, b := range r.Histogram.Distribution() {
		if b.From >= int64(d) {
			n += b.Count
		}
	}
	return n
}
