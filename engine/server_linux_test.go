package engine

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	before := openFiles()
	code := m.Run()
	if code == 0 {
		// fasthttp keeps one goroutine for the Date header.
		if err := goleak.Find(goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		runtime.GC()
		// Go's own poller opens up to three descriptors at first use.
		if after := openFiles(); after > before+4 {
			fmt.Fprintf(os.Stderr, "descriptors: %d before the tests, %d after\n", before, after)
			code = 1
		}
	}
	os.Exit(code)
}

func openFiles() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

// serve starts s on a port of its own and stops it when the test ends.
func serve(t testing.TB, s *Server) string {
	t.Helper()
	if s.Logger == nil {
		s.Logger = log.New(io.Discard, "", 0)
	}
	if s.Loops == 0 {
		s.Loops = 2
	}
	lns, err := Listen("127.0.0.1:0", s.Loops)
	if err != nil {
		t.Fatal(err)
	}
	addr := lns[0].Addr().String()
	done := make(chan error, 1)
	go func() { done <- s.Serve(lns...) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-done; !errors.Is(err, ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
		if n := s.conns.Load(); n != 0 {
			t.Errorf("%d connections counted after the end", n)
		}
	})
	return addr
}

func dial(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

func send(t testing.TB, c net.Conn, s string) {
	t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		t.Fatalf("send: %v", err)
	}
}

func answer(t testing.TB, r *bufio.Reader) (int, string) {
	t.Helper()
	var resp fasthttp.Response
	if err := resp.Read(r); err != nil {
		t.Fatalf("answer: %v", err)
	}
	return resp.StatusCode(), string(resp.Body())
}

// get sends one request and returns its answer.
func get(t testing.TB, c net.Conn, path string) (int, string) {
	t.Helper()
	send(t, c, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
	return answer(t, bufio.NewReader(c))
}

// wantEnd expects the server to close.
func wantEnd(t testing.TB, c net.Conn) {
	t.Helper()
	if n, err := io.Copy(io.Discard, c); err != nil || n != 0 {
		t.Fatalf("want the end of the stream, got %d bytes and %v", n, err)
	}
}

// wantReset expects the server to close, whatever is still in the stream.
func wantClosed(t testing.TB, c net.Conn) {
	t.Helper()
	_, err := io.Copy(io.Discard, c)
	if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
		t.Fatal("the server did not close")
	}
}

// eventually waits for a condition that other goroutines bring about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

func TestBlockingHandlersDoNotStallTheLoop(t *testing.T) {
	release := make(chan struct{})
	handler := func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == "/block" {
			MayBlock(ctx)
			<-release
		}
		_, _ = ctx.Write(ctx.Path())
	}
	for _, tt := range []struct {
		name string
		s    *Server
	}{
		{"undeclared", &Server{Handler: handler, Loops: 1}},
		{"declared", &Server{Handler: handler, Loops: 1, NonBlocking: true}},
		{"marked route", &Server{Handler: NonBlocking(handler), Loops: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			release = make(chan struct{})
			addr := serve(t, tt.s)
			var stuck []*net.TCPConn
			for range 5 {
				c := dial(t, addr)
				send(t, c, "GET /block HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n")
				stuck = append(stuck, c)
			}
			c := dial(t, addr)
			for range 20 {
				if _, body := get(t, c, "/free"); body != "/free" {
					t.Fatalf("got %q", body)
				}
			}
			close(release)
			for _, c := range stuck {
				r := bufio.NewReader(c)
				for _, want := range []string{"/block", "/next"} {
					if _, body := answer(t, r); body != want {
						t.Fatalf("got %q, want %q", body, want)
					}
				}
			}
			eventually(t, "requests counted as offloaded", func() bool { return tt.s.Stats()[0].Offloaded >= 5 })
		})
	}
}

func TestStreamedAnswers(t *testing.T) {
	addr := serve(t, &Server{NonBlocking: true, Loops: 1, Handler: func(ctx *fasthttp.RequestCtx) {
		switch string(ctx.Path()) {
		case "/sized":
			ctx.SetBodyStream(strings.NewReader(strings.Repeat("s", 1<<20)), 1<<20)
		case "/chunked":
			ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
				for i := range 100 {
					fmt.Fprintf(w, "%0100d", i)
					_ = w.Flush()
				}
			})
		case "/broken":
			ctx.SetBodyStream(io.MultiReader(strings.NewReader("some"), brokenReader{}), 100)
		default:
			_, _ = ctx.WriteString("plain")
		}
	}})
	c := dial(t, addr)
	r := bufio.NewReader(c)
	for range 3 {
		send(t, c, "GET /sized HTTP/1.1\r\nHost: a\r\n\r\nGET /chunked HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
		for _, want := range []int{1 << 20, 10_000, 5} {
			if _, body := answer(t, r); len(body) != want {
				t.Fatalf("got %d bytes, want %d", len(body), want)
			}
		}
	}
	send(t, c, "HEAD /sized HTTP/1.1\r\nHost: a\r\n\r\nGET /broken HTTP/1.1\r\nHost: a\r\n\r\n")
	rest, err := io.ReadAll(r)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		t.Fatal(err)
	}
	if bytes.Count(rest, []byte("200 OK")) != 1 { // as with fasthttp, less than a buffer is not sent
		t.Fatalf("after a broken stream: %q", rest)
	}
	c10 := dial(t, addr)
	send(t, c10, "GET /chunked HTTP/1.0\r\n\r\n")
	b, err := io.ReadAll(c10)
	if err != nil || bytes.Contains(b, []byte("chunked")) || len(b) < 10_000 {
		t.Fatalf("HTTP/1.0 stream: %v %q", err, clip(string(b)))
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestSlowReaderOfStreamDoesNotStall(t *testing.T) {
	const size = 16 << 20
	addr := serve(t, &Server{NonBlocking: true, Loops: 1, Handler: func(ctx *fasthttp.RequestCtx) {
		switch string(ctx.Path()) {
		case "/stream":
			ctx.SetBodyStream(io.LimitReader(zeros{}, size), size)
		case "/bytes":
			ctx.SetBody(make([]byte, size))
		}
	}})
	for _, path := range []string{"/stream", "/bytes"} {
		slow := dial(t, addr)
		send(t, slow, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
		time.Sleep(20 * time.Millisecond)
		c := dial(t, addr)
		for range 10 {
			get(t, c, "/")
		}
		r := bufio.NewReaderSize(slow, 1<<20)
		if _, body := answer(t, r); len(body) != size {
			t.Fatalf("got %d bytes", len(body))
		}
		if status, _ := answer(t, r); status != 200 {
			t.Fatalf("then %d", status)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestPanicIs500AndTheLoopGoesOn(t *testing.T) {
	var logged bytes.Buffer
	s := &Server{NonBlocking: true, Loops: 1, Logger: log.New(&logged, "", 0), Handler: func(ctx *fasthttp.RequestCtx) {
		switch string(ctx.Path()) {
		case "/panic":
			panic("boom")
		case "/late":
			MayBlock(ctx)
			time.Sleep(5 * time.Millisecond)
			panic("boom")
		case "/goexit":
			runtime.Goexit()
		case "/late-goexit":
			MayBlock(ctx)
			time.Sleep(5 * time.Millisecond)
			runtime.Goexit()
		}
	}}
	addr := serve(t, s)
	other := dial(t, addr)
	for _, path := range []string{"/panic", "/late", "/goexit", "/late-goexit"} {
		c := dial(t, addr)
		if status, _ := get(t, c, path); status != 500 {
			t.Errorf("%s: %d", path, status)
		}
		wantEnd(t, c)
		if status, _ := get(t, other, "/"); status != 200 {
			t.Errorf("after %s: %d", path, status)
		}
	}
}

func TestTimeoutErrorLeavesTheContextAlone(t *testing.T) {
	release := make(chan struct{})
	var left atomic.Int32
	inner := func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == "/slow" {
			<-release
			MayBlock(ctx)
			_, _ = ctx.WriteString("late")
			_ = ctx.RemoteAddr()
			_ = Context(ctx)
			_, _ = ctx.Conn().Write([]byte("late"))
			left.Add(1)
			return
		}
		_, _ = ctx.WriteString("fast")
	}
	addr := serve(t, &Server{Handler: fasthttp.TimeoutHandler(inner, 20*time.Millisecond, "timed out")})
	c := dial(t, addr)
	r := bufio.NewReader(c)
	for i := range 5 {
		send(t, c, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET /fast HTTP/1.1\r\nHost: a\r\n\r\n")
		if status, body := answer(t, r); status != 408 || body != "timed out" {
			t.Fatalf("%d: %d %q", i, status, body)
		}
		if status, body := answer(t, r); status != 200 || body != "fast" {
			t.Fatalf("%d: %d %q", i, status, body)
		}
	}
	close(release)
	eventually(t, "late handlers return", func() bool { return left.Load() == 5 })
	if _, body := get(t, c, "/fast"); body != "fast" {
		t.Fatalf("got %q", body)
	}
}

func TestHalfCloseStillGetsTheAnswer(t *testing.T) {
	addr := serve(t, &Server{NonBlocking: true, Loops: 1, Handler: func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == "/slow" {
			MayBlock(ctx)
			select {
			case <-time.After(50 * time.Millisecond):
			case <-Context(ctx).Done():
			}
		}
		_, _ = ctx.Write(ctx.Path())
	}})
	for _, path := range []string{"/fast", "/slow"} {
		c := dial(t, addr)
		send(t, c, strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n", 3))
		_ = c.CloseWrite()
		r := bufio.NewReader(c)
		for range 3 {
			if _, body := answer(t, r); body != path {
				t.Fatalf("got %q", body)
			}
		}
		wantEnd(t, c)
	}
}

func TestContextEndsWhenTheClientLeaves(t *testing.T) {
	causes := make(chan error, 1)
	started := make(chan struct{}, 1)
	addr := serve(t, &Server{HangupGrace: 30 * time.Millisecond, Handler: func(ctx *fasthttp.RequestCtx) {
		c := Context(ctx)
		if Context(ctx) != c {
			t.Error("another context the second time")
		}
		started <- struct{}{}
		if string(ctx.Path()) == "/done" {
			context.AfterFunc(c, func() { causes <- context.Cause(c) })
			return
		}
		<-c.Done()
		causes <- context.Cause(c)
	}})
	for _, tt := range []struct {
		name  string
		leave func(*net.TCPConn)
	}{
		{"reset", func(c *net.TCPConn) { _ = c.SetLinger(0); _ = c.Close() }},
		{"close", func(c *net.TCPConn) { _ = c.Close() }},
		{"half-close", func(c *net.TCPConn) { _ = c.CloseWrite() }},
	} {
		c := dial(t, addr)
		send(t, c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		<-started
		tt.leave(c)
		if err := <-causes; !errors.Is(err, ErrClientGone) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	c := dial(t, addr)
	get(t, c, "/done")
	if err := <-causes; !errors.Is(err, context.Canceled) {
		t.Errorf("after the answer: %v", err)
	}
}

func TestLoopAndForeignContexts(t *testing.T) {
	addr := serve(t, &Server{Loops: 2, Handler: func(ctx *fasthttp.RequestCtx) {
		n, ok := Loop(ctx)
		fmt.Fprintf(ctx, "%v", ok && n >= 0 && n < 2)
	}})
	if _, body := get(t, dial(t, addr), "/"); body != "true" {
		t.Fatalf("got %q", body)
	}
	var ctx fasthttp.RequestCtx
	ctx.Init(&fasthttp.Request{}, nil, nil)
	MayBlock(&ctx)
	if _, ok := Loop(&ctx); ok || Context(&ctx) != context.Context(&ctx) {
		t.Fatal("a ctx of another server was taken for one of ours")
	}
}

// TestOtherGoroutinesRun has garbage collections and timers make progress while
// a client keeps the only loop busy, on one P.
func TestOtherGoroutinesRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	addr := serve(t, &Server{Loops: 1, NonBlocking: true, Handler: ok})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		c := dial(t, addr)
		for {
			select {
			case <-stop:
				return
			default:
				get(t, c, "/")
			}
		}
	}()
	for range 20 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	close(stop)
	<-stopped
}
