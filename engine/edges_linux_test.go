package engine

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// TestShutdownWakesNobodyElse ends one loop before the other and lets the time
// run out: the wake-up of the loop that is gone must not go to a descriptor that
// somebody else has opened meanwhile.
func TestShutdownWakesNobodyElse(t *testing.T) {
	started, release := make(chan struct{}, 1), make(chan struct{})
	s := &Server{Loops: 2, Logger: log.New(io.Discard, "", 0), Handler: func(*fasthttp.RequestCtx) {
		started <- struct{}{}
		<-release
	}}
	lns, err := Listen("127.0.0.1:0", 2)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(lns...) }()
	c := dial(t, lns[0].Addr().String())
	send(t, c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-started
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(ctx) }()
	time.Sleep(100 * time.Millisecond) // the idle loop has ended by now, and closed its descriptors
	var files []*os.File
	for range 20 {
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		files = append(files, f)
	}
	if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	for _, f := range files {
		if info, err := f.Stat(); err != nil || info.Size() != 0 {
			t.Errorf("%d bytes were written to descriptor %d, which is a file of ours: %v", info.Size(), f.Fd(), err)
		}
	}
	close(release)
	if err := <-served; !errors.Is(err, ErrServerClosed) {
		t.Errorf("Serve: %v", err)
	}
}

// TestErrorHandlerCannotGiveTheLoopAway calls MayBlock where there is no request
// to go on with; under -race, two leaders would show.
func TestErrorHandlerCannotGiveTheLoopAway(t *testing.T) {
	addr := serve(t, &Server{
		Loops: 1, NonBlocking: true, Handler: ok,
		ErrorHandler: func(ctx *fasthttp.RequestCtx, _ error) {
			MayBlock(ctx)
			ctx.SetStatusCode(fasthttp.StatusTeapot)
		},
	})
	for range 50 {
		bad, good := dial(t, addr), dial(t, addr)
		send(t, bad, "GET / HTTP/1.1\n")
		if status, _ := get(t, good, "/"); status != 200 {
			t.Fatalf("status %d", status)
		}
		if status, _ := answer(t, bufio.NewReader(bad)); status != fasthttp.StatusTeapot {
			t.Fatalf("refused with %d", status)
		}
		_, _ = bad.Close(), good.Close()
	}
}

// TestStopFindsConnectionsThatComeBack takes the moment apart in which a request
// has decided that it may give its connection back without a word, and the stop
// begins before it does.
func TestStopFindsConnectionsThatComeBack(t *testing.T) {
	s := &Server{Handler: ok, NonBlocking: true, Logger: log.New(io.Discard, "", 0)}
	b := newBench(t, s, &wire{room: -1})
	l, c := b.loop, b.conn
	c.requests = 1
	c.state.Store(busy)
	s.stopping.Store(stopSoft)
	l.stop(stopSoft)
	if c.state.CompareAndSwap(busy, 0) {
		t.Error("the connection came back, and nobody will look at it again")
	}
}

// TestContextEndsWhenTheEndCameWithTheRequest: a client that sends and leaves is
// seen in one event if the loop is late.
func TestContextEndsWhenTheEndCameWithTheRequest(t *testing.T) {
	held, cause := make(chan struct{}), make(chan error, 1)
	release := make(chan struct{})
	addr := serve(t, &Server{
		Loops: 1, NonBlocking: true, HangupGrace: 30 * time.Millisecond,
		Handler: func(ctx *fasthttp.RequestCtx) {
			if string(ctx.Path()) == "/hold" { // the loop itself
				close(held)
				<-release
				return
			}
			MayBlock(ctx)
			select {
			case <-Context(ctx).Done():
				cause <- context.Cause(Context(ctx))
			case <-time.After(10 * time.Second):
				cause <- errors.New("the context did not end")
			}
		},
	})
	holder := dial(t, addr)
	send(t, holder, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n")
	<-held
	leaver := dial(t, addr)
	send(t, leaver, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if err := leaver.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond) // both are there before the loop looks
	close(release)
	if err := <-cause; !errors.Is(err, ErrClientGone) {
		t.Error(err)
	}
}

// TestTimedOutHandlerGoesOn has a handler that was answered for by
// TimeoutHandler write to its ctx all the while; -race watches.
func TestTimedOutHandlerGoesOn(t *testing.T) {
	for name, write := range map[string]func(*fasthttp.RequestCtx){
		"stream": func(ctx *fasthttp.RequestCtx) { ctx.SetBodyStream(strings.NewReader("x"), 1) },
		"hijack": func(ctx *fasthttp.RequestCtx) { ctx.Hijack(func(net.Conn) {}) },
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{}, 10)
			h := fasthttp.TimeoutHandler(func(ctx *fasthttp.RequestCtx) {
				for range 200 {
					write(ctx)
					time.Sleep(100 * time.Microsecond)
				}
				ended <- struct{}{}
			}, 2*time.Millisecond, "timed out")
			c := dial(t, serve(t, &Server{Loops: 1, Handler: h}))
			r := bufio.NewReader(c)
			for range 10 {
				send(t, c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				if status, body := answer(t, r); status != fasthttp.StatusRequestTimeout || body != "timed out" {
					t.Fatalf("%d %q", status, body)
				}
			}
			for range 10 {
				<-ended
			}
		})
	}
}

// TestErrorsToHeadHaveNoBody: RFC 9110, section 9.3.2.
func TestErrorsToHeadHaveNoBody(t *testing.T) {
	panics := &Server{NonBlocking: true, Logger: log.New(io.Discard, "", 0), Handler: func(*fasthttp.RequestCtx) { panic("on purpose") }}
	for name, got := range map[string]string{
		"too large": serveStream(t, engineOf(), []byte("HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999\r\n\r\n")),
		"panic":     serveStream(t, panics, []byte("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")),
	} {
		if _, body, ok := strings.Cut(got, "\r\n\r\n"); !ok || body != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestRefusalAtTheDoorArrives sends the request before the answer is read.
func TestRefusalAtTheDoorArrives(t *testing.T) {
	addr := serve(t, &Server{Loops: 1, MaxConns: 1, NonBlocking: true, Handler: ok})
	first := dial(t, addr)
	get(t, first, "/")
	for range 20 {
		c := dial(t, addr)
		send(t, c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		time.Sleep(time.Millisecond)
		if status, _ := answer(t, bufio.NewReader(c)); status != fasthttp.StatusServiceUnavailable {
			t.Fatalf("status %d", status)
		}
		_ = c.Close()
	}
}

// TestUpgradeWithABodyIsIgnored: fasthttp.Server would take memory for the whole
// body before it has come.
func TestUpgradeWithABodyIsIgnored(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n"
	for _, request := range []string{
		head + "Content-Length: 2\r\n\r\nhi",
		head + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
	} {
		s := &Server{NonBlocking: true, Handler: func(ctx *fasthttp.RequestCtx) { ctx.SetBody(ctx.PostBody()) }}
		got := serveStream(t, s, []byte(request+request))
		if strings.Count(got, "\r\n\r\nhi") != 2 {
			t.Errorf("%q", got)
		}
	}
}

// TestFragmentInTarget: RFC 9112, section 3.2, has no fragments, and what stands
// in front of us may not cut them off.
func TestFragmentInTarget(t *testing.T) {
	if got := serveStream(t, engineOf(), []byte("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n")); !strings.HasPrefix(got, "HTTP/1.1 400 ") {
		t.Errorf("%q", got)
	}
}

// BenchmarkSweep is a second of a loop with keep-alive clients that send
// something every 1 to 20 s, under an idle timeout of a minute.
func BenchmarkSweep(b *testing.B) {
	for _, size := range []struct {
		name  string
		conns int
	}{{"10k", 10_000}, {"100k", 100_000}} {
		b.Run(size.name, func(b *testing.B) {
			bench := newBench(b, &Server{Handler: ok, NonBlocking: true, IdleTimeout: time.Minute}, &wire{room: -1})
			l := bench.loop
			rng := rand.New(rand.NewPCG(1, 1))
			conns := make([]*conn, size.conns)
			for i := range conns {
				conns[i] = l.enter(i+1, nil)
				conns[i].requests = 1
				l.timers.set(conns[i], waitIdle, l.now)
			}
			b.ReportAllocs()
			for b.Loop() {
				for range size.conns / 10 {
					conns[rng.IntN(len(conns))].active = l.now
				}
				bench.advance(time.Second)
			}
		})
	}
}
