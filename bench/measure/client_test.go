package measure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
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

	l, err := Dial(ln.Addr().String(), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ids := make([]int64, 41)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	var requests [][]byte
	for pair := range slices.Chunk(ids, 2) {
		if len(pair) == 2 {
			requests = append(requests, Request("GET", fmt.Sprintf("/?ids=%d,%d", pair[0], pair[1]), ""))
		}
	}
	o, err := l.Send(t.Context(), requests, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Latencies) != 20 || o.Failed != 2 || o.Degraded != 1 {
		t.Errorf("got %d requests, %d failed, %d degraded", len(o.Latencies), o.Failed, o.Degraded)
	}
	mu.Lock()
	if len(seen) != 20 || seen["39,40"] != 1 || seen["1,2"] != 1 {
		t.Errorf("seen %v", seen)
	}
	mu.Unlock()
	if o, err = l.Send(t.Context(), requests[3:], 50*time.Millisecond); err != nil || len(o.Latencies) < 17 {
		t.Errorf("got %d requests, %v", len(o.Latencies), err)
	}
}

// TestClientPatience has a server accept and never answer: a caller that is called off
// must come back.
func TestClientPatience(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() //nolint:errcheck // nothing is served
	l, err := Dial(ln.Addr().String(), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if o, err := l.Send(ctx, [][]byte{Request("", "/", "")}, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %+v, %v", o, err)
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
		if got := Percentile(v, c.part); got != c.want {
			t.Errorf("%v: got %d, want %d", c.part, got, c.want)
		}
	}
	if got := Percentile(nil, 0.5); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
}
