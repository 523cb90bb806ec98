package engine

import (
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// describe answers with everything it sees of the request, so that two engines
// that frame or parse differently answer differently.
func describe(ctx *fasthttp.RequestCtx) {
	switch string(ctx.Path()) {
	case "/close":
		ctx.SetConnectionClose()
	case "/204":
		ctx.SetStatusCode(fasthttp.StatusNoContent)
		return
	case "/304":
		ctx.NotModified()
		return
	case "/404":
		ctx.NotFound()
		return
	case "/big":
		for range 5000 {
			_, _ = ctx.WriteString("0123456789abcdef")
		}
		return
	case "/huge":
		ctx.SetBodyString(strings.Repeat("x", 300_000))
		return
	case "/timeout":
		ctx.TimeoutErrorWithCode("too slow", fasthttp.StatusGatewayTimeout)
		return
	case "/early":
		ctx.Response.Header.Add("Link", "</a.css>; rel=preload")
		_ = ctx.EarlyHints()
	case "/headers":
		ctx.Response.Header.Set("X-One", "1")
		ctx.Response.Header.Add("X-Two", "2")
		ctx.Response.Header.SetServer("mine")
		ctx.Response.Header.SetContentType("application/json")
		var c fasthttp.Cookie
		c.SetKey("k")
		c.SetValue("v")
		ctx.Response.Header.SetCookie(&c)
	case "/redirect":
		ctx.Redirect("/there", fasthttp.StatusFound)
		return
	case "/raw":
		ctx.Response.SetBodyRaw([]byte("raw"))
		return
	case "/skip":
		ctx.Response.SkipBody = true
	case "/user":
		ctx.SetUserValue("k", "v")
	case "/empty":
		return
	}
	fmt.Fprintf(ctx, "%s|%s|%s|%s|%v|%d|%v|%v|%v\n", ctx.Method(), ctx.RequestURI(), ctx.Host(), ctx.Request.Header.Protocol(),
		ctx.UserValue("k"), ctx.Request.Header.ContentLength(), ctx.Request.Header.ConnectionClose(), ctx.RemoteAddr(), ctx.LocalAddr())
	for k, v := range ctx.Request.Header.All() {
		fmt.Fprintf(ctx, "%s=%q\n", k, v)
	}
	fmt.Fprintf(ctx, "query %s\nbody %q\n", ctx.QueryArgs(), ctx.Request.Body())
	for k, v := range ctx.PostArgs().All() {
		fmt.Fprintf(ctx, "form %s=%s\n", k, v)
	}
}

func sameErrors(ctx *fasthttp.RequestCtx, err error) {
	status := fasthttp.StatusBadRequest
	var refused *Error
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.As(err, &refused):
		status = refused.Status
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		status = fasthttp.StatusRequestEntityTooLarge
	case errors.As(err, &small):
		status = fasthttp.StatusRequestHeaderFieldsTooLarge
	}
	ctx.Error("refused", status)
}

const diffBodyLimit = 1000

func engineOf() *Server {
	return &Server{
		Handler: describe, NonBlocking: true, Name: "same", ErrorHandler: sameErrors,
		MaxHeaderBytes: 4096, MaxRequestBodySize: diffBodyLimit,
	}
}

func fasthttpOf() *fasthttp.Server {
	return &fasthttp.Server{
		Handler: describe, Name: "same", ErrorHandler: sameErrors, Logger: log.New(io.Discard, "", 0),
		ReadBufferSize: 4096, MaxRequestBodySize: diffBodyLimit, DisablePreParseMultipartForm: true,
	}
}

// validStreams are answered alike by both engines, byte for byte.
func validStreams() []string {
	const h = "Host: a.example\r\n"
	single := []string{
		"GET / HTTP/1.1\r\n" + h + "\r\n",
		"GET /a?b=c&d=%20 HTTP/1.1\r\n" + h + "\r\n",
		"GET /close HTTP/1.1\r\n" + h + "\r\n",
		"GET /204 HTTP/1.1\r\n" + h + "\r\n",
		"GET /304 HTTP/1.1\r\n" + h + "\r\n",
		"GET /404 HTTP/1.1\r\n" + h + "\r\n",
		"GET /big HTTP/1.1\r\n" + h + "\r\n",
		"GET /huge HTTP/1.1\r\n" + h + "\r\n",
		"GET /timeout HTTP/1.1\r\n" + h + "\r\n",
		"GET /early HTTP/1.1\r\n" + h + "\r\n",
		"GET /headers HTTP/1.1\r\n" + h + "\r\n",
		"GET /redirect HTTP/1.1\r\n" + h + "\r\n",
		"GET /raw HTTP/1.1\r\n" + h + "\r\n",
		"GET /skip HTTP/1.1\r\n" + h + "\r\n",
		"GET /user HTTP/1.1\r\n" + h + "\r\n",
		"GET /empty HTTP/1.1\r\n" + h + "\r\n",
		"HEAD / HTTP/1.1\r\n" + h + "\r\n",
		"HEAD /big HTTP/1.1\r\n" + h + "\r\n",
		"HEAD /204 HTTP/1.1\r\n" + h + "\r\n",
		"HEAD /close HTTP/1.1\r\n" + h + "\r\n",
		"OPTIONS * HTTP/1.1\r\n" + h + "\r\n",
		"DELETE /x HTTP/1.1\r\n" + h + "\r\n",
		"PROPFIND /x HTTP/1.1\r\n" + h + "\r\n",
		"M-SEARCH /x HTTP/1.1\r\n" + h + "\r\n",
		"GET http://b.example/x HTTP/1.1\r\n" + h + "\r\n",
		"GET http://b.example?x HTTP/1.1\r\n" + h + "\r\n",
		"GET / HTTP/1.1\r\nhOsT:a.example\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: \t a.example:8080 \t\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.0\r\n" + h + "\r\n",
		"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
		"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
		"HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
		"GET /timeout HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
		"POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc",
		"GET / HTTP/1.1\r\n" + h + "Connection: close\r\n\r\n",
		"GET / HTTP/1.1\r\n" + h + "Connection: Close\r\n\r\n",
		"GET / HTTP/1.1\r\n" + h + "Connection: foo, close\r\n\r\n",
		"GET / HTTP/1.1\r\n" + h + "Connection: keep-alive\r\n\r\n",
		"GET / HTTP/1.1\r\n" + h + "Connection: upgrade\r\n\r\n",
		"GET / HTTP/1.1\r\n" + h + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n\r\n",
		"GET / HTTP/1.1\r\n" + h + "Upgrade: websocket\r\n\r\n",
		"GET / HTTP/1.1\r\n" + h + "Cookie: a=b; c=d\r\nCookie: e=f\r\n\r\n",
		"GET / HTTP/1.1\r\n" + h + "X:\r\nY: \r\nZ:\t\r\n\r\n",
		"GET / HTTP/1.1\r\n" + h + "X-Latin: caf\xe9\r\n\r\n",
		"GET / HTTP/1.1\r\n" + h + "X-Tab: a\tb\r\n\r\n",
		"GET / HTTP/1.1\r\n" + h + "X-Same: 1\r\nX-Same: 2\r\n\r\n",
		"GET / HTTP/1.1\r\n" + h + "User-Agent: curl/8\r\nAccept: */*\r\nContent-Type: x/y\r\nReferer: r\r\n\r\n",
		"GET / HTTP/1.1\r\n" + h + "Content-Length: 0\r\n\r\n",
		"GET / HTTP/1.1\r\n" + h + "Content-Length: 5\r\n\r\nhello",
		"POST / HTTP/1.1\r\n" + h + "\r\n",
		"POST / HTTP/1.1\r\n" + h + "Content-Length: 0\r\n\r\n",
		"POST / HTTP/1.1\r\n" + h + "Content-Length: 5\r\n\r\nhello",
		"POST / HTTP/1.1\r\n" + h + "Content-Length: 0005\r\n\r\nhello",
		"PUT / HTTP/1.1\r\n" + h + "Content-Length: 9\r\n\r\n\r\n\r\n\r\n\x00\xff!",
		"POST / HTTP/1.1\r\n" + h + "Content-Length: 1000\r\n\r\n" + strings.Repeat("z", 1000),
		"POST / HTTP/1.1\r\n" + h + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 7\r\n\r\na=1&b=2",
		"POST / HTTP/1.1\r\n" + h + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
		"POST / HTTP/1.1\r\n" + h + "Expect: 100-Continue\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n000a\r\n0123456789\r\nA\r\n0123456789\r\n000\r\n\r\n",
		"POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n5;ext=1;b=\"c\"\r\nhello\r\n0;x\r\n\r\n",
		"POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n",
		"POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n3e8\r\n" + strings.Repeat("c", 1000) + "\r\n0\r\n\r\n",
		"DELETE / HTTP/1.1\r\n" + h + "Content-Length: 2\r\n\r\nxy",
		"\r\nGET / HTTP/1.1\r\n" + h + "\r\n",
		"\r\n\r\nGET / HTTP/1.1\r\n" + h + "\r\n",
		"GET / HTTP/1.1\r\n" + h + "X-Long: " + strings.Repeat("v", 3000) + "\r\n\r\n",
		"GET /" + strings.Repeat("p", 3000) + " HTTP/1.1\r\n" + h + "\r\n",
	}
	streams := slices.Clone(single)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 { // pipelines
		var b strings.Builder
		for range 2 + rng.IntN(6) {
			one := single[rng.IntN(len(single))]
			if strings.HasPrefix(one, "GET /early") {
				continue // fasthttp sends its 103 before the answers it holds back
			}
			b.WriteString(one)
		}
		streams = append(streams, b.String())
	}
	return streams
}

// TestSameAsFasthttp compares both engines on streams that every parser has to
// understand the same way, and the engine with itself on all the ways of
// cutting them into reads.
func TestSameAsFasthttp(t *testing.T) {
	ref := fasthttpOf()
	rng := rand.New(rand.NewPCG(3, 4))
	for _, stream := range validStreams() {
		want := serveFasthttp(ref, []byte(stream))
		if got := serveStream(t, engineOf(), []byte(stream)); got != want {
			t.Fatalf("stream %q\n got %q\nwant %q", stream, clip(got), clip(want))
		}
		for _, cut := range cuts(rng, len(stream)) {
			if got := serveStream(t, engineOf(), split(stream, cut)...); got != want {
				t.Fatalf("stream %q cut at %v\n got %q\nwant %q", stream, cut, clip(got), clip(want))
			}
		}
	}
}

// TestRefusals lists the streams that the engines answer differently, and why.
// The answer does not depend on the cut, and nothing after the refused request
// is served.
func TestRefusals(t *testing.T) {
	const h = "Host: a.example\r\n"
	smuggled := "GET /smuggled HTTP/1.1\r\n" + h + "\r\n"
	rng := rand.New(rand.NewPCG(5, 6))
	for _, tt := range []struct {
		why    string
		stream string
		status int
	}{
		{"bare LF after the request line", "GET / HTTP/1.1\n" + h + "\r\n", 400},
		{"bare LF after a field", "GET / HTTP/1.1\r\nHost: a\n\r\n", 400},
		{"bare LF ends the head", "GET / HTTP/1.1\r\n" + h + "\n", 400},
		{"bare LF before the request line", "\nGET / HTTP/1.1\r\n" + h + "\r\n", 400},
		{"bare CR in a value", "GET / HTTP/1.1\r\n" + h + "X: a\rb\r\n\r\n", 400},
		{"NUL in a value", "GET / HTTP/1.1\r\n" + h + "X: a\x00b\r\n\r\n", 400},
		{"space in a field name", "GET / HTTP/1.1\r\n" + h + "X Y: 1\r\n\r\n", 400},
		{"space before the colon", "GET / HTTP/1.1\r\n" + h + "X : 1\r\n\r\n", 400},
		{"no field name", "GET / HTTP/1.1\r\n" + h + ": 1\r\n\r\n", 400},
		{"no colon", "GET / HTTP/1.1\r\n" + h + "X\r\n\r\n", 400},
		{"folded field", "GET / HTTP/1.1\r\n" + h + "X: 1\r\n 2\r\n\r\n", 400},
		{"folded first field", "GET / HTTP/1.1\r\n X: 1\r\n" + h + "\r\n", 400},
		{"byte above 0x7f in a field name", "GET / HTTP/1.1\r\n" + h + "X\xe9: 1\r\n\r\n", 400},
		{"no Host", "GET / HTTP/1.1\r\n\r\n", 400},
		{"empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 400},
		{"two Hosts", "GET / HTTP/1.1\r\n" + h + h + "\r\n", 400},
		{"user in Host", "GET / HTTP/1.1\r\nHost: user@a\r\n\r\n", 400},
		{"path in Host", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
		{"space in Host", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
		{"bad port in Host", "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", 400},
		{"open bracket in Host", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 400},
		{"user in the target", "GET http://u@a/ HTTP/1.1\r\n" + h + "\r\n", 400},
		{"byte above 0x7f in the target", "GET /\xe9 HTTP/1.1\r\n" + h + "\r\n", 400},
		{"control byte in the target", "GET /\x01 HTTP/1.1\r\n" + h + "\r\n", 400},
		{"space in the target", "GET /a b HTTP/1.1\r\n" + h + "\r\n", 400},
		{"no slash in the target", "GET a HTTP/1.1\r\n" + h + "\r\n", 400},
		{"asterisk with GET", "GET * HTTP/1.1\r\n" + h + "\r\n", 400},
		{"two spaces", "GET  / HTTP/1.1\r\n" + h + "\r\n", 400},
		{"tab instead of space", "GET\t/ HTTP/1.1\r\n" + h + "\r\n", 400},
		{"no version", "GET /\r\n" + h + "\r\n", 400},
		{"bad method", "G(T / HTTP/1.1\r\n" + h + "\r\n", 400},
		{"space before the method", " GET / HTTP/1.1\r\n" + h + "\r\n", 400},
		{"lower-case version", "GET / http/1.1\r\n" + h + "\r\n", 400},
		{"version without point", "GET / HTTP/11\r\n" + h + "\r\n", 400},
		{"HTTP/2.0", "GET / HTTP/2.0\r\n" + h + "\r\n", 505},
		{"HTTP/9.9", "GET / HTTP/9.9\r\n" + h + "\r\n", 505},
		{"HTTP/1.2", "GET / HTTP/1.2\r\n" + h + "\r\n", 505},
		{"preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
		{"length and coding", "POST / HTTP/1.1\r\n" + h + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		{"coding and length", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400},
		{"two equal lengths", "POST / HTTP/1.1\r\n" + h + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400},
		{"list of lengths", "POST / HTTP/1.1\r\n" + h + "Content-Length: 3, 3\r\n\r\nabc", 400},
		{"signed length", "POST / HTTP/1.1\r\n" + h + "Content-Length: +3\r\n\r\nabc", 400},
		{"negative length", "POST / HTTP/1.1\r\n" + h + "Content-Length: -3\r\n\r\nabc", 400},
		{"hexadecimal length", "POST / HTTP/1.1\r\n" + h + "Content-Length: 0x3\r\n\r\nabc", 400},
		{"empty length", "POST / HTTP/1.1\r\n" + h + "Content-Length:\r\n\r\nabc", 400},
		{"length above the limit", "POST / HTTP/1.1\r\n" + h + "Content-Length: 1001\r\n\r\n", 413},
		{"length that overflows", "POST / HTTP/1.1\r\n" + h + "Content-Length: 99999999999999999999\r\n\r\n", 413},
		{"identity with a length", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: identity\r\nContent-Length: 3\r\n\r\nabc", 501},
		{"unknown coding", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
		{"chunked is not last", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 501},
		{"hidden coding", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400},
		{"two codings", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		{"coding in 1.0", "POST / HTTP/1.0\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		{"expectation", "POST / HTTP/1.1\r\n" + h + "Expect: 200-ok\r\nContent-Length: 3\r\n\r\nabc", 417},
		{"space after a chunk size", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n", 400},
		{"space before a chunk size", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n 5\r\nhello\r\n0\r\n\r\n", 400},
		{"signed chunk size", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n", 400},
		{"hexadecimal prefix", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", 400},
		{"bare LF after a chunk size", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", 400},
		{"bare LF after a chunk", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n", 400},
		{"chunk too long", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n\r\n", 400},
		{"chunk size that overflows", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n", 400},
		{"chunks above the limit", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n3e9\r\n", 413},
		{"control byte in an extension", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n5;a\rb\r\nhello\r\n0\r\n\r\n", 400},
		{"endless extension", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n5;" + strings.Repeat("e", 300), 400},
		{"folded trailer", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: 1\r\n 2\r\n\r\n", 400},
		{"forbidden trailer", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 1\r\n\r\n", 400},
		{"endless trailers", "POST / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("X: 12345678\r\n", 400), 431},
		{"endless target", "GET /" + strings.Repeat("t", 5000), 414},
		{"endless fields", "GET / HTTP/1.1\r\n" + strings.Repeat("X: 12345678\r\n", 400), 431},
		{"endless empty lines", strings.Repeat("\r\n", 2100), 414},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\r\n", 400},
	} {
		t.Run(tt.why, func(t *testing.T) {
			for _, before := range []string{"", "POST /first HTTP/1.1\r\n" + h + "Content-Length: 2\r\n\r\nok"} {
				stream := before + tt.stream + smuggled
				want := serveStream(t, engineOf(), []byte(stream))
				list := statuses(t, strings.ReplaceAll(want, "HTTP/1.1 100 Continue\r\n\r\n", ""))
				if len(list) == 0 || list[len(list)-1] != tt.status {
					t.Fatalf("answers %v, want %d at the end", list, tt.status)
				}
				if len(list) > 2 || strings.Contains(want, "smuggled") || !strings.Contains(want, "Connection: close") {
					t.Fatalf("served on: %q", want)
				}
				for _, cut := range cuts(rng, len(stream)) {
					if got := serveStream(t, engineOf(), split(stream, cut)...); got != want {
						t.Fatalf("cut at %v\n got %q\nwant %q", cut, got, want)
					}
				}
			}
		})
	}
}

// TestTruncated ends a stream at every position: what was complete is answered,
// and the cut request is answered with 400. (fasthttp says nothing at all when a
// chunked body is cut between chunks, not even to the request before.)
func TestTruncated(t *testing.T) {
	one := "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
	two := "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
	stream := one + two
	for n := range len(stream) + 1 {
		var want []int
		switch {
		case n == 0:
		case n < len(one):
			want = []int{400}
		case n == len(one):
			want = []int{200}
		case n < len(stream):
			want = []int{200, 400}
		default:
			want = []int{200, 200}
		}
		if got := statuses(t, serveStream(t, engineOf(), []byte(stream[:n]))); !slices.Equal(got, want) {
			t.Errorf("cut to %q: answers %v, want %v", stream[:n], got, want)
		}
	}
	for _, blank := range []string{"\r\n", "\r\n\r\n"} {
		if got := serveStream(t, engineOf(), []byte(blank)); got != "" {
			t.Errorf("empty lines were answered with %q", got)
		}
	}
}

// cuts returns ways of cutting n bytes: every single position of short streams,
// byte by byte, and some at random.
func cuts(rng *rand.Rand, n int) [][]int {
	var list [][]int
	if n <= 150 {
		for i := 1; i < n; i++ {
			list = append(list, []int{i})
		}
	}
	if n <= 500 {
		bytewise := make([]int, 0, n)
		for i := 1; i < n; i++ {
			bytewise = append(bytewise, i)
		}
		list = append(list, bytewise)
	}
	for range 10 {
		var cut []int
		for i := 1; i < n; i++ {
			if rng.IntN(n) < 5 {
				cut = append(cut, i)
			}
		}
		list = append(list, cut)
	}
	return list
}

func split(stream string, cut []int) [][]byte {
	var pieces [][]byte
	from := 0
	for _, to := range append(slices.Clone(cut), len(stream)) {
		pieces = append(pieces, []byte(stream[from:to]))
		from = to
	}
	return pieces
}

func clip(s string) string {
	if len(s) > 1500 {
		return s[:700] + " ... " + s[len(s)-700:]
	}
	return s
}
