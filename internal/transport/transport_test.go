package transport_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"pinion/internal/transport"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// fasthttp keeps one clock for the Date header as long as the process
		// lives, and its worker pools look every ten seconds whether to end.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// patience bounds what a test waits for; none waits this long when it passes.
const patience = 10 * time.Second

type server struct {
	*transport.FastHTTP
	addr  string
	ended chan error
}

func serve(t *testing.T, wrap func(net.Listener) net.Listener, h fasthttp.RequestHandler) *server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{addr: ln.Addr().String(), ended: make(chan error, 1)}
	if wrap != nil {
		ln = wrap(ln)
	}
	s.FastHTTP = transport.NewFastHTTP(transport.Config{
		Handler: h,
		ErrorHandler: func(ctx *fasthttp.RequestCtx, err error) {
			if errors.Is(err, fasthttp.ErrBodyTooLarge) {
				ctx.SetStatusCode(fasthttp.StatusRequestEntityTooLarge)
				return
			}
			ctx.SetStatusCode(fasthttp.StatusBadRequest)
		},
		ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: patience,
		MaxHeaderBytes: 8 << 10, MaxBodyBytes: 64 << 10, MaxConns: 4,
		Overload: func(int) []byte { return []byte("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n") },
	})
	go func() { s.ended <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = s.Shutdown(ctx)
	})
	return s
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

func statusLine(t *testing.T, c net.Conn) string {
	t.Helper()
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	return strings.TrimSpace(line)
}

const get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

func ok(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("ok") }

// starving fails as accept(2) does without descriptors, a few times.
type starving struct {
	net.Listener
	failures atomic.Int32
}

func (l *starving) Accept() (net.Conn, error) {
	if l.failures.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

func TestAcceptSurvivesWantOfDescriptors(t *testing.T) {
	s := serve(t, func(ln net.Listener) net.Listener {
		l := &starving{Listener: ln}
		l.failures.Store(3)
		return l
	}, ok)
	c := dial(t, s.addr)
	if _, err := io.WriteString(c, get); err != nil {
		t.Fatal(err)
	}
	if got := statusLine(t, c); got != "HTTP/1.1 200 OK" {
		t.Errorf("got %q", got)
	}
}

// TestErrorAnswerArrives sends far more than the body limit without reading:
// a server that just closed would reset the connection, answer and all.
func TestErrorAnswerArrives(t *testing.T) {
	s := serve(t, nil, ok)
	c := dial(t, s.addr)
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 800000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	chunk := make([]byte, 80000)
	for range 10 {
		if _, err := c.Write(chunk); err != nil {
			t.Fatalf("the server stopped reading: %v", err)
		}
		time.Sleep(time.Millisecond) // so that the server's close falls in between
	}
	if got := statusLine(t, c); got != "HTTP/1.1 413 Request Entity Too Large" {
		t.Errorf("got %q", got)
	}
}

// TestOverload fills the server with idle connections.
func TestOverload(t *testing.T) {
	s := serve(t, nil, ok)
	for range 4 {
		c := dial(t, s.addr)
		if _, err := io.WriteString(c, get); err != nil {
			t.Fatal(err)
		}
		if got := statusLine(t, c); got != "HTTP/1.1 200 OK" {
			t.Fatalf("got %q", got)
		}
	}
	if got := statusLine(t, dial(t, s.addr)); got != "HTTP/1.1 503 Service Unavailable" {
		t.Errorf("one too many got %q", got)
	}
}

// TestExpectTooLarge: a body that would be refused is not asked for.
func TestExpectTooLarge(t *testing.T) {
	s := serve(t, nil, ok)
	for length, want := range map[string]string{
		"65536": "HTTP/1.1 100 Continue",
		"65537": "HTTP/1.1 413 Request Entity Too Large",
	} {
		c := dial(t, s.addr)
		if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: "+length+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if got := statusLine(t, c); got != want {
			t.Errorf("length %s: got %q, want %q", length, got, want)
		}
		_ = c.Close()
	}
}

// TestResetIsNoRequest: a probe that connects and resets is not an error that
// anybody answers, counts or logs.
func TestResetIsNoRequest(t *testing.T) {
	failures := make(chan error, 1)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	s := transport.NewFastHTTP(transport.Config{
		Handler:      ok,
		ErrorHandler: func(_ *fasthttp.RequestCtx, err error) { failures <- err },
	})
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	c := dial(t, addr)
	if err := c.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	// Connections are accepted in order: this answer comes after the other one
	// was taken in.
	next := dial(t, addr)
	if _, err := io.WriteString(next, get); err != nil {
		t.Fatal(err)
	}
	statusLine(t, next)
	for deadline := time.Now().Add(patience); s.Connections() > 1 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	_ = next.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-failures:
		t.Errorf("it was taken for a request: %v", err)
	default:
	}
}

// TestShutdownBeforeServe: a signal may come before the goroutine that serves
// has run at all.
func TestShutdownBeforeServe(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := transport.NewFastHTTP(transport.Config{Handler: ok, ErrorHandler: func(*fasthttp.RequestCtx, error) {}})
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("Serve goes on after Shutdown")
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		t.Error("something still listens")
	}
}

func TestShutdownFinishesRequestsAndClosesIdle(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	s := serve(t, nil, func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == "/slow" {
			close(entered)
			<-release
		}
		ok(ctx)
	})
	idle, busy := dial(t, s.addr), dial(t, s.addr)
	if _, err := io.WriteString(idle, get); err != nil {
		t.Fatal(err)
	}
	idleReader := bufio.NewReader(idle)
	var resp fasthttp.Response
	if err := resp.Read(idleReader); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(busy, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-entered

	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		done <- s.Shutdown(ctx)
	}()
	// An idle connection closes while the slow request still runs. (One that
	// never sent a byte gets five seconds from fasthttp: its request may be on
	// the way.)
	if _, err := idleReader.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("idle connection: got %v, want EOF", err)
	}
	select {
	case err := <-done:
		t.Fatalf("Shutdown returned %v with a request open", err)
	default:
	}
	close(release)
	if err := resp.Read(bufio.NewReader(busy)); err != nil {
		t.Fatalf("open request: %v", err)
	}
	if !resp.ConnectionClose() {
		t.Error("an answer given while stopping must say Connection: close")
	}
	if err := <-done; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-s.ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if n := s.Connections(); n != 0 {
		t.Errorf("%d connections left", n)
	}
}

func TestShutdownOutOfTimeCutsOff(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	s := serve(t, nil, func(*fasthttp.RequestCtx) {
		close(entered)
		<-release
	})
	c := dial(t, s.addr)
	if _, err := io.WriteString(c, get); err != nil {
		t.Fatal(err)
	}
	<-entered
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err := s.Shutdown(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 connections cut off") {
		t.Errorf("got %v", err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still open")
	}
}
