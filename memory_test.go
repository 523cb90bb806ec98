//go:build !race

package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"pinion/handlers"
	"pinion/internal/transport"
)

// TestIdleConnectionsHoldNoAnswers: a connection that idles after a large
// request and a large answer must not keep their buffers, or a few thousand
// clients take all memory.
func TestIdleConnectionsHoldNoAnswers(t *testing.T) {
	p := newProduct(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := transport.NewFastHTTP(transport.Config{
		Handler: p.api.Serve, ErrorHandler: p.api.ServeError, MaxHeaderBytes: 4 << 10, MaxBodyBytes: handlers.MaxBodyBytes,
	})
	go func() { _ = srv.Serve(ln) }()
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = srv.Shutdown(ctx)
	}()

	// 1,000 ids in 60 KB: the answer has some 400 KB.
	body := `{"ids":[` + idList(1000) + `]`
	for len(body) < 60_000 {
		body += "          "
	}
	text := post("/api/users/lookup", body+"}")
	const clients = 100
	ask := func(n int) []net.Conn {
		conns := make([]net.Conn, n)
		for i := range conns {
			c, err := net.DialTimeout("tcp", ln.Addr().String(), patience)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(c, text); err != nil {
				t.Fatal(err)
			}
			var resp fasthttp.Response
			if err := resp.Read(bufio.NewReader(c)); err != nil || resp.StatusCode() != 200 {
				t.Fatalf("%d, %v", resp.StatusCode(), err)
			}
			conns[i] = c
		}
		return conns
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // the first one moves the pools to where the second drops them
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	warm := ask(2)
	before := heap()
	conns := ask(clients)
	after := heap()
	each := (int64(after) - int64(before)) / clients
	t.Logf("%d bytes of heap for each idle connection", each)
	// What fasthttp needs for itself is 10 KiB.
	if each > 32<<10 {
		t.Errorf("an idle connection holds %d bytes", each)
	}
	for _, c := range append(warm, conns...) {
		_ = c.Close()
	}
}
