package measure

import (
	"bufio"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"pinion/affinity"
	"pinion/bench/record"
)

// seen is what a server saw of the requests of wrk.
type seen struct {
	mu                    sync.Mutex
	conns, requests, last int // last: those that asked for the end of the connection
	pipelined             int // the most that were there at once
	method, body, kind    string
}

// watch answers on a listener until it is closed.
func (s *seen) watch(ln net.Listener, status string) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns++
		s.mu.Unlock()
		go s.one(c, status)
	}
}

func (s *seen) one(c net.Conn, status string) {
	defer c.Close() //nolint:errcheck // the test is about the client
	in := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(req.Body)
		s.mu.Lock()
		s.requests++
		s.method, s.body, s.kind = req.Method, string(body), req.Header.Get("Content-Type")
		s.pipelined = max(s.pipelined, 1+strings.Count(buffered(in), "\r\n\r\n"))
		if req.Close {
			s.last++
		}
		s.mu.Unlock()
		answer := "HTTP/1.1 " + status + "\r\nContent-Length: 2\r\n\r\n{}"
		if req.Close {
			answer = "HTTP/1.1 " + status + "\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
		}
		if _, err := io.WriteString(c, answer); err != nil || req.Close {
			return
		}
	}
}

func buffered(in *bufio.Reader) string {
	b, _ := in.Peek(in.Buffered())
	return string(b)
}

// TestWrk has a server say what it saw, for each kind of load.
func TestWrk(t *testing.T) {
	if _, err := exec.LookPath("wrk"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	allowed, err := affinity.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	run := func(w Wrk, status string) (*Loaded, *seen) {
		t.Helper()
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close() //nolint:errcheck // the server ends with it
		s := &seen{}
		go s.watch(ln, status)
		w.CPUs, w.Conns, w.Seconds, w.URL = allowed, 4, 1, "http://"+ln.Addr().String()+"/x?a=1"
		l, err := w.Run(t.Context(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		t.Logf("wrk: %+v; server: %+v", l, s)
		if l.Requests == 0 || l.Seconds < 0.5 || l.CPU <= 0 {
			t.Errorf("figures %+v", l)
		}
		// Answers to the last requests may come too late to be counted.
		if l.Requests > int64(s.requests) || l.Requests < int64(s.requests)-4*16 {
			t.Errorf("wrk counted %d requests, the server %d", l.Requests, s.requests)
		}
		return l, s
	}
	l, s := run(Wrk{}, "200 OK")
	if s.method != "GET" || s.body != "" || s.last != 0 || s.pipelined != 1 {
		t.Errorf("plain: %+v", s)
	}
	if l.Latency == nil || l.Latency.P50 <= 0 || l.Latency.P99 < l.Latency.P50 || l.Latency.Max < l.Latency.P99 {
		t.Errorf("latency: %+v", l.Latency)
	}
	size := len("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
	if err := l.Answered(size); err != nil {
		t.Error(err)
	}
	for _, other := range []int{size - 30, size + 10} {
		if err := l.Answered(other); !errors.Is(err, ErrBytes) {
			t.Errorf("answers of %d bytes pass for %d: %v", size, other, err)
		}
	}
	if _, s := run(Wrk{Method: "POST", Body: `{"a":"]]"}`}, "200 OK"); s.method != "POST" || s.body != `{"a":"]]"}` || s.kind != "application/json" {
		t.Errorf("POST: %+v", s)
	}
	if l, s := run(Wrk{Pipeline: 16}, "200 OK"); s.pipelined != 16 || l.Latency != nil {
		t.Errorf("pipelined: %+v, %+v", s, l.Latency)
	}
	// The end comes in the middle of each of the four connections.
	if l, s := run(Wrk{PerConnection: 10}, "200 OK"); s.last == 0 || math.Abs(float64(s.requests-10*s.last)) > 10*4 || s.conns < s.last || l.Errors != (record.Errors{}) || l.Answered(size) != nil {
		t.Errorf("10 a connection: %+v, %+v", s, l.Errors)
	}
	if _, s := run(Wrk{PerConnection: 1}, "200 OK"); s.last != s.requests {
		t.Errorf("1 a connection: %+v", s)
	}
	if l, _ := run(Wrk{}, "503 Service Unavailable"); l.Errors.Status != l.Requests {
		t.Errorf("refused: %+v", l)
	}
	nobody := Wrk{CPUs: allowed, Conns: 1, Seconds: 1, URL: "http://127.0.0.1:1/"}
	if l, err := nobody.Run(t.Context(), t.TempDir()); err == nil {
		t.Errorf("nobody listens: %+v", l)
	}
}

func TestThreads(t *testing.T) {
	for _, c := range []struct{ cpus, conns, want int }{{1, 64, 1}, {7, 64, 4}, {2, 65, 1}, {8, 1, 1}, {3, 256, 2}, {7, 0, 1}} {
		var cpus []int
		for i := range c.cpus {
			cpus = append(cpus, i)
		}
		w := Wrk{CPUs: affinity.SetOf(cpus...), Conns: c.conns}
		if got := w.threads(); got != c.want {
			t.Errorf("%d connections on %d CPUs: %d threads, want %d", c.conns, c.cpus, got, c.want)
		}
	}
}

// TestAnswered has answers that end their connections, of a server that else says nothing
// of it, and of one that says that it stays.
func TestAnswered(t *testing.T) {
	for _, c := range []struct {
		bytes int64
		ok    bool
	}{{16900, true}, {16400, true}, {18800, true}, {16100, false}, {19200, false}, {2000, false}} {
		l := Loaded{Requests: 100, Bytes: c.bytes}
		if err := l.Answered(169); (err == nil) != c.ok {
			t.Errorf("%d bytes of 100 answers of 169: %v", c.bytes, err)
		}
	}
}
