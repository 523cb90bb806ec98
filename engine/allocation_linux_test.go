//go:build !race

package engine

import (
	"testing"
	"unsafe"

	"github.com/valyala/fasthttp"
)

// TestNoAllocations serves whole requests in steady state.
func TestNoAllocations(t *testing.T) {
	handler := func(ctx *fasthttp.RequestCtx) {
		switch string(ctx.Path()) {
		case "/mayblock":
			MayBlock(ctx)
		case "/addr":
			_ = ctx.RemoteAddr()
		}
		ctx.SetContentType("application/json")
		ctx.Response.AppendBody(ctx.PostBody())
	}
	for _, stream := range []string{
		"GET /api/ping HTTP/1.1\r\nHost: a.example\r\nUser-Agent: test\r\nAccept: */*\r\n\r\n",
		"HEAD /api/ping HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"GET /addr HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
	} {
		w := &wire{room: -1}
		b := newBench(t, &Server{Handler: handler, NonBlocking: true, Name: "test"}, w)
		whole, half := []byte(stream), len(stream)/2
		pieces := make([][]byte, 0, 2)
		if n := testing.AllocsPerRun(200, func() {
			w.out.Reset()
			w.in = append(pieces[:0], whole)
			b.event(readable)
		}); n != 0 {
			t.Errorf("%.60q: %v allocations", stream, n)
		}
		if n := testing.AllocsPerRun(200, func() {
			w.out.Reset()
			w.in = append(pieces[:0], whole[:half])
			b.event(readable)
			w.in = append(pieces[:0], whole[half:])
			b.event(readable)
		}); n != 0 {
			t.Errorf("%.60q in two reads: %v allocations", stream, n)
		}
		if b.out.Len() == 0 {
			t.Errorf("%.60q was not answered", stream)
		}
	}
}

// TestSizes keeps an idle connection small: this and its slot are all it is.
func TestSizes(t *testing.T) {
	if n := unsafe.Sizeof(conn{}); n > 160 {
		t.Errorf("conn takes %d bytes", n)
	}
}
