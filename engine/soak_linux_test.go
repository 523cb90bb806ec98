package engine

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// TestSoak mixes inline, offloaded, streamed, promoted, aborted, pipelined and
// slow requests on few loops. Every answer carries the marker of its request,
// and none may show up on another connection.
func TestSoak(t *testing.T) {
	seconds := 3 * time.Second
	if testing.Short() {
		seconds = 500 * time.Millisecond
	}
	handler := func(ctx *fasthttp.RequestCtx) {
		marker := string(ctx.Request.Header.Peek("X-Marker"))
		body := string(ctx.PostBody())
		switch string(ctx.Path()) {
		case "/offload":
			MayBlock(ctx)
			time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
		case "/quick":
			MayBlock(ctx)
		case "/wait":
			MayBlock(ctx)
			select {
			case <-Context(ctx).Done():
			case <-time.After(2 * time.Millisecond):
			}
		case "/panic":
			panic(marker)
		case "/stream":
			ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
				_, _ = w.WriteString(marker + body)
				_ = w.Flush()
				_, _ = w.WriteString(strings.Repeat("s", 3000))
			})
			return
		case "/large":
			ctx.SetBodyString(marker + body + strings.Repeat("l", 200_000))
			return
		case "/upgrade":
			ctx.SetStatusCode(fasthttp.StatusSwitchingProtocols)
			ctx.Hijack(func(c net.Conn) { _, _ = io.WriteString(c, marker); _, _ = io.Copy(c, c) })
			return
		}
		if string(ctx.Request.Header.Peek("X-Marker")) != marker || string(ctx.PostBody()) != body {
			panic("the request changed under its handler")
		}
		_, _ = ctx.WriteString(marker)
		_, _ = ctx.WriteString(body)
	}
	for _, nonBlocking := range []bool{true, false} {
		addr := serve(t, &Server{Handler: handler, NonBlocking: nonBlocking, Loops: 2, HangupGrace: time.Millisecond, ReadTimeout: 10 * time.Second})
		stop := time.Now().Add(seconds)
		var clients sync.WaitGroup
		for id := range 32 {
			clients.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(id), 7))
				for n := 0; time.Now().Before(stop); n++ {
					if err := soakConnection(addr, fmt.Sprintf("<%d.%d", id, n), rng); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		clients.Wait()
	}
}

// soakConnection runs some requests on one connection and checks the markers.
func soakConnection(addr, name string, rng *rand.Rand) error {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	c := nc.(*net.TCPConn)
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	r := bufio.NewReader(c)
	paths := []string{"/", "/", "/", "/offload", "/quick", "/wait", "/stream", "/large"}
	for i := range 1 + rng.IntN(10) {
		marker := fmt.Sprintf("%s.%d>", name, i)
		switch rng.IntN(30) {
		case 0: // leave in the middle
			_, _ = io.WriteString(c, "POST /offload HTTP/1.1\r\nHost: a\r\nX-Marker: "+marker+"\r\nContent-Length: 10\r\n\r\nab")
			if rng.IntN(2) == 0 {
				_ = c.SetLinger(0)
			}
			return nil
		case 1: // leave without the answer
			_, _ = io.WriteString(c, "GET /offload HTTP/1.1\r\nHost: a\r\nX-Marker: "+marker+"\r\n\r\n")
			if rng.IntN(2) == 0 {
				_ = c.SetLinger(0)
			}
			return nil
		case 2:
			_, _ = io.WriteString(c, "GET /upgrade HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: upgrade\r\nX-Marker: "+marker+"\r\n\r\necho"+marker)
			_ = c.CloseWrite()
			b, err := io.ReadAll(r)
			if err != nil || !strings.HasSuffix(string(b), marker+"echo"+marker) {
				return fmt.Errorf("upgrade %s: %w %q", marker, err, b)
			}
			return nil
		case 3:
			_, _ = io.WriteString(c, "GET /panic HTTP/1.1\r\nHost: a\r\nX-Marker: "+marker+"\r\n\r\n")
			b, err := io.ReadAll(r)
			if err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 500 ") {
				return fmt.Errorf("panic %s: %w %q", marker, err, b)
			}
			return nil
		}
		var batch strings.Builder
		var want []string
		for k := range 1 + rng.IntN(4) {
			body := strings.Repeat("b", rng.IntN(50))
			own := fmt.Sprintf("%s%d.", marker, k)
			want = append(want, own+body)
			if rng.IntN(2) == 0 {
				fmt.Fprintf(&batch, "POST %s HTTP/1.1\r\nHost: a\r\nX-Marker: %s\r\nContent-Length: %d\r\n\r\n%s",
					paths[rng.IntN(len(paths))], own, len(body), body)
			} else {
				fmt.Fprintf(&batch, "POST %s HTTP/1.1\r\nHost: a\r\nX-Marker: %s\r\nTransfer-Encoding: chunked\r\n\r\n",
					paths[rng.IntN(len(paths))], own)
				if body != "" {
					fmt.Fprintf(&batch, "%x\r\n%s\r\n", len(body), body)
				}
				batch.WriteString("0\r\n\r\n")
			}
		}
		all := batch.String()
		if rng.IntN(3) == 0 { // in pieces
			k := rng.IntN(len(all))
			if _, err := io.WriteString(c, all[:k]); err != nil {
				return fmt.Errorf("%s: %w", marker, err)
			}
			time.Sleep(time.Duration(rng.IntN(1500)) * time.Microsecond)
			all = all[k:]
		}
		if _, err := io.WriteString(c, all); err != nil {
			return fmt.Errorf("%s: %w", marker, err)
		}
		for _, w := range want {
			var resp fasthttp.Response
			if err := resp.Read(r); err != nil {
				return fmt.Errorf("%s: %w", marker, err)
			}
			got := strings.TrimRight(string(resp.Body()), "sl")
			if got != w {
				return fmt.Errorf("%s: answer %q, want %q", marker, clip(got), w)
			}
		}
	}
	return nil
}
