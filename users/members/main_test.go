package members

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// script is a member service that answers every request with the same bytes.
type script struct {
	net.Listener
	answer  func(n int, ids []int64) string // n counts requests from 1; "" answers nothing, and waits
	closing bool                            // each connection after one answer
	late    func(n int) string              // what follows an answer 20 ms later; may be nil

	requests atomic.Int64
	accepted atomic.Int64
	wg       sync.WaitGroup
	mu       sync.Mutex
	conns    map[net.Conn]struct{}
}

func serveScript(t testing.TB, answer func(n int, ids []int64) string) *script {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, ln, answer)
}

func serveOn(t testing.TB, ln net.Listener, answer func(n int, ids []int64) string) *script {
	s := &script{Listener: ln, answer: answer, conns: make(map[net.Conn]struct{})}
	s.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.accepted.Add(1)
			s.mu.Lock()
			s.conns[c] = struct{}{}
			s.mu.Unlock()
			s.wg.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(s.stop)
	return s
}

func (s *script) serve(c net.Conn) {
	defer func() {
		_ = c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		var ids []int64
		for part := range strings.SplitSeq(req.URL.Query().Get("ids"), ",") {
			id, _ := strconv.ParseInt(part, 10, 64)
			ids = append(ids, id)
		}
		n := int(s.requests.Add(1))
		answer := s.answer(n, ids)
		if answer == "" {
			_, _ = io.Copy(io.Discard, r) // until the client leaves
			return
		}
		if _, err := io.WriteString(c, answer); err != nil || s.closing {
			return
		}
		if s.late == nil {
			continue
		}
		if surplus := s.late(n); surplus != "" {
			time.Sleep(20 * time.Millisecond)
			_, _ = io.WriteString(c, surplus)
		}
	}
}

// open is the number of connections that the client has not closed.
func (s *script) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// cut closes all connections.
func (s *script) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
	}
}

func (s *script) stop() {
	_ = s.Close()
	s.cut()
	s.wg.Wait()
}

func (s *script) url() string { return "http://" + s.Addr().String() }

// ok is a whole answer of status 200.
func ok(body string) string {
	return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// all answers that every id asked for is a member with as many points.
func all(_ int, ids []int64) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		n := strconv.FormatInt(id, 10)
		b.WriteString(`{"id":` + n + `,"level":"gold","points":` + n + `}`)
	}
	return ok(`{"members":[` + b.String() + `]}`)
}

func newClient(t testing.TB, opts Options) *Client {
	t.Helper()
	if opts.Timeout == 0 {
		opts.Timeout = 10 * time.Second // nothing here depends on being fast
	}
	c, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// eventually waits until what holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}
