package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

func ok(ctx *fasthttp.RequestCtx) { _, _ = ctx.WriteString("ok") }

// within fails when f takes less than atLeast: timeouts may be late on a busy
// host, but never early.
func within(t *testing.T, atLeast time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if d := time.Since(start); d < atLeast {
		t.Errorf("ended after %v, before %v", d, atLeast)
	}
}

func TestTimeouts(t *testing.T) {
	const d = 100 * time.Millisecond
	for _, tt := range []struct {
		name   string
		s      *Server
		send   string
		status int // 0: closed without an answer
	}{
		{"nothing sent", &Server{HeaderTimeout: d}, "", 0},
		{"idle", &Server{IdleTimeout: d, HeaderTimeout: time.Minute}, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 200},
		{"idle from ReadTimeout", &Server{ReadTimeout: d}, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 200},
		{"part of a head", &Server{HeaderTimeout: d}, "GET / HTTP/1.1\r\nHost", 408},
		{"part of a head from ReadTimeout", &Server{ReadTimeout: d}, "GET / HTTP/1.1\r\nHost", 408},
		{"part of a body", &Server{ReadTimeout: d}, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab", 408},
		{"part of a chunk", &Server{ReadTimeout: d}, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", 408},
	} {
		for _, nonBlocking := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%v", tt.name, nonBlocking), func(t *testing.T) {
				s := &Server{HeaderTimeout: tt.s.HeaderTimeout, ReadTimeout: tt.s.ReadTimeout, IdleTimeout: tt.s.IdleTimeout}
				s.Handler, s.NonBlocking = ok, nonBlocking
				c := dial(t, serve(t, s))
				within(t, d, func() {
					send(t, c, tt.send)
					r := bufio.NewReader(c)
					if tt.status != 0 {
						if status, _ := answer(t, r); status != tt.status {
							t.Fatalf("got %d", status)
						}
					}
					if b, err := io.ReadAll(r); err != nil || len(b) > 0 {
						t.Fatalf("%v %q", err, b)
					}
				})
			})
		}
	}
}

// TestSlowHeadsAreNotKeptAlive drips a head: bytes must not restart its clock.
func TestSlowHeadsAreNotKeptAlive(t *testing.T) {
	s := &Server{Handler: ok, HeaderTimeout: 150 * time.Millisecond, IdleTimeout: time.Minute}
	for _, first := range []string{"", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"} {
		t.Run(fmt.Sprintf("%d", len(first)), func(t *testing.T) {
			c := dial(t, serve(t, &Server{Handler: s.Handler, HeaderTimeout: s.HeaderTimeout, IdleTimeout: s.IdleTimeout}))
			r := bufio.NewReader(c)
			if first != "" {
				send(t, c, first)
				answer(t, r)
			}
			go func() {
				for _, b := range []byte("GET / HTTP/1.1\r\nX: " + strings.Repeat("y", 2000)) {
					if _, err := c.Write([]byte{b}); err != nil {
						return
					}
					time.Sleep(5 * time.Millisecond)
				}
			}()
			if status, _ := answer(t, r); status != 408 {
				t.Fatalf("got %d", status)
			}
		})
	}
}

// TestBodyRate uses the clock of the bench: bodies below the minimum rate end,
// faster ones go on past their first seconds.
func TestBodyRate(t *testing.T) {
	head := "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"
	for _, tt := range []struct {
		perSecond int
		want      string
	}{{500, "408"}, {2000, ""}} {
		b := newBench(t, &Server{Handler: ok, NonBlocking: true, MinBodyRate: 1000}, &wire{room: -1})
		b.feed([]byte(head))
		for range 20 {
			b.advance(time.Second)
			b.feed(make([]byte, tt.perSecond))
		}
		if got := b.sent(); !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("%d bytes a second: got %q", tt.perSecond, got)
		}
	}
}

// advance moves the clock of the loop and handles what is due.
func (b *bench) advance(d time.Duration) {
	l := b.loop
	l.now += int64(d)
	l.clock.Store(l.now)
	for {
		c, w := l.timers.due(l.now)
		if c == nil {
			break
		}
		l.expire(c, w)
	}
	b.rest()
}

func TestWriteTimeout(t *testing.T) {
	for _, handler := range []fasthttp.RequestHandler{
		func(ctx *fasthttp.RequestCtx) { ctx.SetBody(make([]byte, 32<<20)) },
		func(ctx *fasthttp.RequestCtx) { ctx.SetBodyStream(io.LimitReader(zeros{}, 32<<20), 32<<20) },
	} {
		s := &Server{Handler: handler, WriteTimeout: 100 * time.Millisecond}
		c := dial(t, serve(t, s))
		send(t, c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		eventually(t, "the connection of a client that reads nothing is closed", func() bool { return s.conns.Load() == 0 })
	}
}

func TestConnectionLimits(t *testing.T) {
	s := &Server{Handler: ok, MaxConns: 3, Loops: 1}
	addr := serve(t, s)
	var conns []net.Conn
	for range 3 {
		c := dial(t, addr)
		get(t, c, "/")
		conns = append(conns, c)
	}
	if b, _ := io.ReadAll(dial(t, addr)); !strings.HasPrefix(string(b), "HTTP/1.1 503 ") {
		t.Fatalf("one too many got %q", b)
	}
	_ = conns[0].Close()
	eventually(t, "room again", func() bool { return s.conns.Load() == 2 })
	get(t, dial(t, addr), "/")

	s = &Server{Handler: ok, MaxConnsPerIP: 2, Loops: 1}
	addr = serve(t, s)
	for range 2 {
		c := dial(t, addr)
		get(t, c, "/")
		conns = append(conns, c)
	}
	if b, _ := io.ReadAll(dial(t, addr)); !strings.HasPrefix(string(b), "HTTP/1.1 429 ") {
		t.Fatalf("one too many of an address got %q", b)
	}
	_, port, _ := net.SplitHostPort(addr)
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	c, err := d.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	get(t, c, "/")
	_ = conns[len(conns)-1].Close()
	eventually(t, "room again", func() bool { return s.conns.Load() == 2 })
	get(t, dial(t, addr), "/")
}

func TestRequestsPerConnection(t *testing.T) {
	addr := serve(t, &Server{Handler: ok, MaxRequestsPerConn: 3})
	c := dial(t, addr)
	for range 3 {
		get(t, c, "/")
	}
	wantEnd(t, c)
	c = dial(t, serve(t, &Server{Handler: ok, DisableKeepalive: true}))
	get(t, c, "/")
	wantEnd(t, c)
}

// TestOutOfDescriptors lets accept fail as it does when there are none left.
func TestOutOfDescriptors(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS} {
		var mu sync.Mutex
		calls, failing := 0, true
		sys := kernel()
		accept := sys.accept
		sys.accept = func(fd int) (int, syscall.Errno) {
			mu.Lock()
			defer mu.Unlock()
			calls++
			if failing {
				return -1, errno
			}
			return accept(fd)
		}
		addr := serve(t, &Server{Handler: ok, Loops: 1, sys: sys, HeaderTimeout: 400 * time.Millisecond})
		c := dial(t, addr)
		time.Sleep(300 * time.Millisecond)
		mu.Lock()
		if calls == 0 || calls > 20 {
			t.Errorf("%v: accept was called %d times in 300 ms", errno, calls)
		}
		failing = false
		mu.Unlock()
		get(t, c, "/")
	}
}

func TestShutdownFinishesWhatRuns(t *testing.T) {
	release, started := make(chan struct{}), make(chan struct{}, 8)
	s := &Server{Loops: 2, NonBlocking: true, Handler: func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == "/slow" {
			MayBlock(ctx)
			started <- struct{}{}
			<-release
		}
		_, _ = ctx.WriteString("ok")
	}}
	lns, err := Listen("127.0.0.1:0", 2)
	if err != nil {
		t.Fatal(err)
	}
	addr := lns[0].Addr().String()
	served := make(chan error, 1)
	go func() { served <- s.Serve(lns...) }()

	var idle, slow, part []*net.TCPConn
	for range 4 {
		c := dial(t, addr)
		get(t, c, "/")
		idle = append(idle, c)
		c = dial(t, addr)
		send(t, c, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
		slow = append(slow, c)
		<-started
		c = dial(t, addr)
		send(t, c, "GET / HTTP/1.1\r\nHost: a")
		part = append(part, c)
	}
	eventually(t, "all accepted", func() bool { return s.conns.Load() == 12 })
	time.Sleep(50 * time.Millisecond) // until the parts are read
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(context.Background()) }()
	for _, c := range idle {
		wantEnd(t, c) // at once
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		_ = c.Close()
		t.Error("still accepting")
	}
	select {
	case err := <-down:
		t.Fatalf("Shutdown did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	for _, c := range part {
		send(t, c, "\r\n\r\n")
	}
	close(release)
	for _, c := range append(slow, part...) {
		b, err := io.ReadAll(c)
		if err != nil || !strings.Contains(string(b), "Connection: close") || !strings.HasSuffix(string(b), "ok") {
			t.Errorf("in progress: %v %q", err, b)
		}
	}
	if err := <-down; err != nil {
		t.Fatal(err)
	}
	if err := <-served; !errors.Is(err, ErrServerClosed) {
		t.Fatal(err)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatalf("second Shutdown: %v", err)
	}
	if err := s.ListenAndServe("127.0.0.1:0"); !errors.Is(err, ErrServerClosed) {
		t.Fatalf("Serve after Shutdown: %v", err)
	}
}

func TestShutdownOutOfTime(t *testing.T) {
	causes, started := make(chan error, 1), make(chan struct{}, 2)
	s := &Server{Loops: 1, Handler: func(ctx *fasthttp.RequestCtx) {
		started <- struct{}{}
		<-Context(ctx).Done()
		causes <- context.Cause(Context(ctx))
	}}
	lns, err := Listen("127.0.0.1:0", 1)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(lns...) }()
	c := dial(t, lns[0].Addr().String())
	send(t, c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-started
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if err := <-causes; !errors.Is(err, ErrShutdown) {
		t.Fatalf("cause %v", err)
	}
	wantClosed(t, c)
	if err := <-served; !errors.Is(err, ErrServerClosed) {
		t.Errorf("Serve: %v", err)
	}
}

func TestErrorHandlerSeesTheReason(t *testing.T) {
	var got error
	s := engineOf()
	s.ErrorHandler = func(ctx *fasthttp.RequestCtx, err error) {
		got = err
		ctx.SetStatusCode(fasthttp.StatusTeapot)
	}
	out := serveStream(t, s, []byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n"))
	var refused *Error
	if !errors.As(got, &refused) || refused.Status != 413 || !errors.Is(got, fasthttp.ErrBodyTooLarge) {
		t.Fatalf("got %v", got)
	}
	if !strings.HasPrefix(out, "HTTP/1.1 418 ") || !strings.Contains(out, "Connection: close") {
		t.Fatalf("got %q", out)
	}
}
