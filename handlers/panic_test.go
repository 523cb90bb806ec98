package handlers

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"pinion/internal/stats"
	"pinion/users"
	"pinion/users/sqldb"
)

// TestPanic: a handler that panics is a 500, a log line and a counter, tells
// the client nothing, and the server lives.
func TestPanic(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	db, err := sqldb.Open(ctx, sqldb.Options{DSN: "sqlite::memory:"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	svc := users.NewService(users.Config{Rows: db})
	defer svc.Close()
	var log bytes.Buffer
	reg := stats.NewRegistry(1)
	a, err := New(Options{Users: svc, Stats: reg, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	a.add("/panic", methods{"GET": {"panic", func(ctx *fasthttp.RequestCtx, _ int64) error {
		ctx.SetBodyString("half an answer")
		panic("secret cause")
	}}})

	ln := fasthttputil.NewInmemoryListener()
	srv := &fasthttp.Server{Handler: a.Serve, ErrorHandler: a.ServeError}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	defer func() {
		_ = ln.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for range 2 {
		c, err := ln.Dial()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET /panic HTTP/1.1\r\nHost: a\r\nX-Request-Id: p1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		var resp fasthttp.Response
		if err := resp.Read(bufio.NewReader(c)); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode() != 500 || string(resp.Header.ContentType()) != contentProblem || !resp.ConnectionClose() {
			t.Errorf("got %s", resp.Header.String())
		}
		const want = `{"type":"about:blank","title":"Internal Server Error","status":500,` +
			`"detail":"the server failed; the request id finds the reason in its log","request_id":"p1"}`
		if body := string(resp.Body()); body != want {
			t.Errorf("got %s", body)
		}
		_ = c.Close()
	}
	if text := log.String(); !strings.Contains(text, "secret cause") || !strings.Contains(text, "request_id=p1") ||
		!strings.Contains(text, "panic_test.go") {
		t.Errorf("the log tells too little: %s", text)
	}
	if n := a.observe.panics.Value(); n != 2 {
		t.Errorf("%d panics counted, want 2", n)
	}
}
