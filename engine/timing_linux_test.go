package engine

import (
	"testing"

	"github.com/valyala/fasthttp"
)

// BenchmarkServe is what a request costs without the kernel.
func BenchmarkServe(b *testing.B) {
	body := []byte(`{"status":"ok"}`)
	handler := func(ctx *fasthttp.RequestCtx) {
		_ = ctx.Path()
		ctx.SetContentType("application/json")
		ctx.Response.AppendBody(body)
	}
	wrk := "GET /api/ping HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"
	browser := "GET /api/ping HTTP/1.1\r\nHost: api.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n" +
		"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\nAccept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br\r\n" +
		"Cookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\nConnection: keep-alive\r\nUpgrade-Insecure-Requests: 1\r\n\r\n"
	for _, bb := range []struct {
		name, stream string
		requests     int
	}{{"wrk", wrk, 1}, {"browser", browser, 1}, {"pipelined", repeat(wrk, 16), 16}} {
		b.Run(bb.name, func(b *testing.B) {
			w := &wire{room: -1}
			bench := newBench(b, &Server{Handler: handler, NonBlocking: true, Name: "pinion"}, w)
			stream := []byte(bb.stream)
			pieces := make([][]byte, 0, 1)
			b.ReportAllocs()
			for b.Loop() {
				w.out.Reset()
				w.in = append(pieces[:0], stream)
				bench.event(readable)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*bb.requests), "ns/request")
		})
	}
}

// BenchmarkFraming is the part of BenchmarkServe that finds and checks the head.
func BenchmarkFraming(b *testing.B) {
	stream := []byte("GET /api/ping HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept: */*\r\nUser-Agent: test/1.0 (some comment of usual length)\r\n\r\n")
	lim := limits{head: 16 << 10, body: 1 << 20}
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		var f framing
		if f.advance(stream, &lim) != complete {
			b.Fatal("not complete")
		}
	}
}

func repeat(s string, n int) string {
	var out string
	for range n {
		out += s
	}
	return out
}
