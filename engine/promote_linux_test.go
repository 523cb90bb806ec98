package engine

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

func TestUpgradeIsPromoted(t *testing.T) {
	s := &Server{NonBlocking: true, Handler: func(ctx *fasthttp.RequestCtx) {
		MayBlock(ctx) // nothing to do here
		if string(ctx.Path()) == "/panic" {
			panic("boom")
		}
		if string(ctx.Path()) == "/declined" {
			return
		}
		ctx.SetStatusCode(fasthttp.StatusSwitchingProtocols)
		ctx.Response.Header.Set("Upgrade", "echo")
		ctx.Response.Header.Set("Connection", "Upgrade")
		ctx.Hijack(func(c net.Conn) { _, _ = io.Copy(c, c) })
	}}
	addr := serve(t, s)
	for _, head := range []string{
		"GET /echo HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
	} {
		c := dial(t, addr)
		get(t, c, "/declined") // inline first
		send(t, c, head+"early ")
		send(t, c, "late")
		_ = c.CloseWrite()
		b, err := io.ReadAll(c)
		if err != nil || !bytes.HasSuffix(b, []byte("early late")) || !bytes.HasPrefix(b, []byte("HTTP/1.1 101")) {
			t.Fatalf("%v %q", err, b)
		}
	}
	c := dial(t, addr)
	if status, _ := get2(t, c, "GET /declined HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nGET /x"); status != 200 {
		t.Fatalf("declined: %d", status)
	}
	wantClosed(t, c)
	c = dial(t, addr)
	if status, _ := get2(t, c, "GET /panic HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"); status != 500 {
		t.Fatalf("panic: %d", status)
	}
	open := dial(t, addr) // closed by the shutdown
	send(t, open, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	eventually(t, "the last upgrade", func() bool {
		var n uint64
		for _, st := range s.Stats() {
			n += st.Promoted
		}
		return n == 5
	})
}

func get2(t testing.TB, c net.Conn, raw string) (int, string) {
	t.Helper()
	send(t, c, raw)
	return answer(t, bufio.NewReader(c))
}

func TestStreamedRequestBodiesArePromoted(t *testing.T) {
	started := make(chan struct{}, 1)
	addr := serve(t, &Server{StreamRequestBody: true, MaxRequestBodySize: 1 << 20, Handler: func(ctx *fasthttp.RequestCtx) {
		started <- struct{}{}
		n, err := io.Copy(io.Discard, ctx.RequestBodyStream())
		fmt.Fprintf(ctx, "%d %v", n, err)
	}})
	c := dial(t, addr)
	send(t, c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n"+strings.Repeat("b", 20000))
	<-started // before the body is there
	send(t, c, strings.Repeat("b", 180000))
	if _, body := answer(t, bufio.NewReader(c)); body != "200000 <nil>" {
		t.Fatalf("got %q", body)
	}
}

func TestHijackWithoutUpgradeIs500(t *testing.T) {
	addr := serve(t, &Server{Handler: func(ctx *fasthttp.RequestCtx) { ctx.Hijack(func(net.Conn) {}) }})
	c := dial(t, addr)
	if status, _ := get(t, c, "/"); status != 500 {
		t.Fatalf("got %d", status)
	}
	wantEnd(t, c)
}
