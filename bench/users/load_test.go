package main

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// TestSend counts what a server does with requests, each of which must come once.
func TestSend(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := map[string]int{}
	s := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		ids := string(ctx.QueryArgs().Peek("ids"))
		mu.Lock()
		seen[ids]++
		mu.Unlock()
		switch ids {
		case "1,2":
			ctx.Error("no", fasthttp.StatusServiceUnavailable)
		case "3,4":
			ctx.SetBodyString(`{"users":[],"missing":[],"degraded":["member"]}`)
		case "5,6":
			ctx.HijackSetNoResponse(true)
			ctx.Hijack(func(net.Conn) {}) // closes the connection without an answer
		default:
			ctx.SetBodyString(`{"users":[{"name":"\"degraded\":"}],"missing":[]}`)
		}
	}}
	go s.Serve(ln)     //nolint:errcheck // requests would fail
	defer s.Shutdown() //nolint:errcheck // the test is over

	l, err := dial(ln.Addr().String(), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	ids := make([]int64, 41)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	requests := requestsFor(ids, 2)
	o, err := l.send(requests, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.latencies) != 20 || o.failed != 2 || o.degraded != 1 {
		t.Errorf("got %d requests, %d failed, %d degraded", len(o.latencies), o.failed, o.degraded)
	}
	mu.Lock()
	if len(seen) != 20 || seen["39,40"] != 1 || seen["1,2"] != 1 {
		t.Errorf("seen %v", seen)
	}
	mu.Unlock()
	if o, err = l.send(requests[3:], 50*time.Millisecond); err != nil || len(o.latencies) < 17 {
		t.Errorf("got %d requests, %v", len(o.latencies), err)
	}
}

func TestPercentile(t *testing.T) {
	var v []time.Duration
	for i := range 200 {
		v = append(v, time.Duration(i+1))
	}
	for _, c := range []struct {
		part float64
		want time.Duration
	}{{0, 1}, {0.5, 101}, {0.99, 199}, {1, 200}} {
		if got := percentile(v, c.part); got != c.want {
			t.Errorf("%v: got %d, want %d", c.part, got, c.want)
		}
	}
	if got := percentile(nil, 0.5); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
}

func TestOutsideTest(t *testing.T) {
	var order []string
	f := func() (err error) {
		outside := &outsideTest{}
		defer outside.end(&err)
		outside.Cleanup(func() { order = append(order, "first") })
		outside.Cleanup(func() { order = append(order, "second") })
		outside.Skip("there is no ", "server")
		return nil
	}
	if err := f(); err == nil || err.Error() != "there is no server" {
		t.Errorf("got %v", err)
	}
	if got := strings.Join(order, " "); got != "second first" {
		t.Errorf("cleaned up: %s", got)
	}
}
