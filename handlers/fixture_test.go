package handlers_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"
	"go.uber.org/goleak"

	"pinion/engine"
	"pinion/handlers"
	"pinion/internal/health"
	"pinion/internal/stats"
	"pinion/internal/transport"
	"pinion/users"
	"pinion/users/sqldb"
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

// fixtureOptions changes what a fixture is made of. The zero value is 20 demo
// users, writes by token123, and a clock that stands still.
type fixtureOptions struct {
	loop     bool                        // serve by event loops instead of fasthttp.Server
	members  users.MemberSource          // instead of the table
	rows     func(users.Rows) users.Rows // around the database
	tokens   *handlers.Tokens            // instead of token123
	prepare  func(*fixture)              // runs when all is set up
	readTime time.Duration               // the read timeout, if not patience
	workTime time.Duration               // the request timeout, if not the default
	log      handlers.AccessLog
	logger   *slog.Logger
}

// fixture is an API on a real database, served over an in-memory listener.
type fixture struct {
	api     *handlers.API
	db      *sqldb.DB
	users   *users.Service
	stats   *stats.Registry
	health  *health.State
	connect func() (net.Conn, error)
}

func newFixture(t testing.TB, o fixtureOptions) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	f := &fixture{stats: stats.NewRegistry(2)}
	var err error
	f.db, err = sqldb.Open(ctx, sqldb.Options{
		DSN: "sqlite::memory:",
		Now: func() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = f.db.Close() // some tests have closed it
	})
	if _, err := f.db.Fill(ctx, 20, nil); err != nil {
		t.Fatal(err)
	}
	if o.members == nil {
		o.members = f.db
	}
	if o.logger == nil {
		o.logger = slog.New(slog.DiscardHandler)
	}
	var rows users.Rows = f.db
	if o.rows != nil {
		rows = o.rows(rows)
	}
	f.users = users.NewService(users.Config{Rows: rows, Attributes: f.db, Members: o.members, LoadTimeout: o.workTime * 4 / 5, Stats: f.stats})
	t.Cleanup(f.users.Close)
	f.health = health.New(health.Config{Ping: f.users.Ready, Log: o.logger})
	f.health.SetReady()
	if o.tokens == nil {
		o.tokens = new(handlers.Tokens)
		o.tokens.Allow("demo", handlers.DemoToken)
	}
	options := handlers.Options{
		Users: f.users, Ready: f.health.Check, Tokens: o.tokens, Stats: f.stats, AccessLog: o.log, Logger: o.logger,
		RequestTimeout: o.workTime,
	}
	if o.loop {
		options.MayBlock, options.Context = engine.MayBlock, engine.Context
	}
	if f.api, err = handlers.New(options); err != nil {
		t.Fatal(err)
	}
	if o.readTime == 0 {
		o.readTime = patience
	}
	f.serve(t, o)
	if o.prepare != nil {
		o.prepare(f)
	}
	return f
}

// serve puts the API behind the in-memory listener, or behind a loop on TCP.
func (f *fixture) serve(t testing.TB, o fixtureOptions) {
	c := transport.Config{
		Handler: f.api.Serve, ErrorHandler: f.api.ServeError, Overload: f.api.Overload,
		ReadTimeout: o.readTime, WriteTimeout: patience, IdleTimeout: patience,
		MaxHeaderBytes: 16 << 10, MaxBodyBytes: handlers.MaxBodyBytes,
	}
	ended := make(chan error, 1)
	if o.loop {
		lns, err := engine.Listen("127.0.0.1:0", 1)
		if err != nil {
			t.Fatal(err)
		}
		f.connect = func() (net.Conn, error) { return net.DialTimeout("tcp", lns[0].Addr().String(), patience) }
		srv := transport.NewLoop(c, 1)
		go func() { ended <- srv.Serve(lns...) }()
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if err := srv.Shutdown(ctx); err != nil {
				t.Error(err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		return
	}
	ln := fasthttputil.NewInmemoryListener()
	f.connect = ln.Dial
	srv := transport.NewFastHTTP(c)
	go func() { ended <- srv.Serve(ln) }()
	t.Cleanup(func() {
		// Not Shutdown, which looks only every 100 ms whether all is done.
		if err := ln.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func (f *fixture) dial(t testing.TB) net.Conn {
	t.Helper()
	c, err := f.connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // before the server stops
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

// send sends the bytes of a request on a connection of its own, asks for its
// end, and returns all that comes back up to there.
func (f *fixture) send(t testing.TB, request string) []byte {
	t.Helper()
	c := f.dial(t)
	// The server may answer, and close, before it has read everything.
	go func() { _, _ = io.WriteString(c, request) }()
	var answer bytes.Buffer
	buf := make([]byte, 64<<10)
	for {
		n, err := c.Read(buf)
		answer.Write(buf[:n])
		if err != nil || complete(request, answer.Bytes()) {
			break
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return answer.Bytes()
}

// complete reports whether answer holds the whole answer to request.
func complete(request string, answer []byte) bool {
	head, body, ok := bytes.Cut(answer, []byte("\r\n\r\n"))
	if !ok {
		return false
	}
	var h fasthttp.ResponseHeader
	if err := h.Read(newReader(append(head, "\r\n\r\n"...))); err != nil {
		return false
	}
	return len(request) > 4 && request[:4] == "HEAD" || len(body) >= h.ContentLength()
}
