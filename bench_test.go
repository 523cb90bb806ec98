package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"pinion/handlers"
	"pinion/internal/accesslog"
	"pinion/internal/health"
	"pinion/internal/stats"
	"pinion/users"
	"pinion/users/sqldb"
)

// demoUsers fill the database of a benchmark.
const demoUsers = 1000

// product is the service as main wires it, without sockets.
type product struct {
	api *handlers.API
	ctx *fasthttp.RequestCtx
}

// newProduct wires an API on an in-memory database and warms L1 with ids 1..n.
func newProduct(tb testing.TB) *product {
	tb.Helper()
	work, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db, err := sqldb.Open(work, sqldb.Options{DSN: "sqlite::memory:"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	if _, err := db.Fill(work, demoUsers, nil); err != nil {
		tb.Fatal(err)
	}
	reg := stats.NewRegistry(runtime.GOMAXPROCS(0))
	svc := users.NewService(users.Config{Rows: db, Attributes: db, Members: db, TTL: 24 * time.Hour, Stats: reg})
	tb.Cleanup(svc.Close)
	log := accesslog.New(accesslog.Config{Mode: accesslog.Errors(), Out: io.Discard, Stats: reg})
	tb.Cleanup(func() { _ = log.Close(context.Background()) })
	ready := health.New(health.Config{Ping: svc.Ready})
	ready.SetReady()
	api, err := handlers.New(handlers.Options{
		Users: svc, Ready: ready.Check, AccessLog: log, Stats: reg, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		tb.Fatal(err)
	}
	warm := users.Batch{IDs: make([]int64, demoUsers)}
	for i := range warm.IDs {
		warm.IDs[i] = int64(i + 1)
	}
	if err := svc.Load(work, &warm); err != nil {
		tb.Fatal(err)
	}
	p := &product{api: api, ctx: new(fasthttp.RequestCtx)}
	p.ctx.Init2(nopConn{}, nil, false)
	return p
}

// nopConn is the connection of a request that came over none.
type nopConn struct{ net.Conn }

func (nopConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// request is one request, parsed anew for each answer as a transport would.
type request struct {
	text   string
	reader *strings.Reader
	buf    *bufio.Reader
}

func newRequest(text string) *request {
	r := strings.NewReader(text)
	return &request{text: text, reader: r, buf: bufio.NewReaderSize(r, 64<<10)}
}

// answer parses the request, runs the handler and writes the response, all of
// the work of an answer but the sockets.
func (p *product) answer(r *request, w *bufio.Writer) (status int, err error) {
	r.reader.Reset(r.text)
	r.buf.Reset(r.reader)
	if err := p.ctx.Request.ReadLimitBody(r.buf, handlers.MaxBodyBytes); err != nil {
		return 0, err
	}
	p.api.Serve(p.ctx)
	status = p.ctx.Response.StatusCode()
	if err := p.ctx.Response.Write(w); err != nil {
		return status, err
	}
	err = w.Flush()
	p.ctx.ResetUserValues()
	p.ctx.Request.Reset()
	p.ctx.Response.Reset()
	return status, err
}

func get(target string) string { return "GET " + target + " HTTP/1.1\r\nHost: pinion\r\n\r\n" }

func post(target, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: pinion\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		target, len(body), body)
}

func idList(n int) string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(i + 1)
	}
	return strings.Join(ids, ",")
}

// requests are the shapes that are benchmarked, and asserted not to allocate
// where allocs is 0.
var requests = []struct {
	name, text string
	status     int
	allocs     float64 // at most; -1 is not asserted
}{
	{"ping", get("/api/ping"), 200, 0},
	{"health", get("/health"), 200, 0},
	{"user", get("/api/users/1"), 200, 0},
	{"user_by_router", get("http://pinion/api/users/1"), 200, -1},
	{"users_20", get("/api/users?ids=" + idList(20)), 200, 0},
	{"users_20_shuffled", get("/api/users?ids=20,1,19,2,18,3,17,4,16,5,15,6,14,7,13,8,12,9,11,10"), 200, 0},
	{"lookup_20", post("/api/users/lookup", `{"ids":[`+idList(20)+`]}`), 200, 0},
	{"lookup_1000", post("/api/users/lookup", `{"ids":[`+idList(1000)+`]}`), 200, 0},
	{"not_found", get("/nothing"), 404, -1},
}

func BenchmarkRequest(b *testing.B) {
	p := newProduct(b)
	for _, c := range requests {
		b.Run(c.name, func(b *testing.B) {
			r, w := newRequest(c.text), bufio.NewWriterSize(io.Discard, 4<<10)
			b.ReportAllocs()
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				if status, err := p.answer(r, w); err != nil || status != c.status {
					b.Fatalf("status %d, %v", status, err)
				}
			}
		})
	}
}
