package openloop

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pinion/bench/record"
)

func TestErrorKinds(t *testing.T) {
	reset := func(c *net.TCPConn) { _ = c.SetLinger(0) }
	c := config("")
	c.Conns, c.Rate, c.Duration = 2, 100, 300*time.Millisecond

	t.Run("status", func(t *testing.T) {
		c := c
		c.URL = serve(t, always("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"))
		if r := mustRun(t, c); r.Requests != 30 || r.Errors != (record.Errors{Status: 30}) {
			t.Errorf("%d answered, %+v", r.Requests, r.Errors)
		}
	})
	t.Run("read", func(t *testing.T) {
		c := c
		c.URL = serve(t, func(conn *net.TCPConn) {
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			reset(conn)
		})
		r := mustRun(t, c)
		if r.Requests != 0 || r.Errors.Read+r.Errors.Write != 30 || r.Errors.Read == 0 || r.Errors.Timeout != 0 {
			t.Errorf("%d answered, %+v", r.Requests, r.Errors)
		}
	})
	t.Run("read of half an answer", func(t *testing.T) {
		c := c
		c.URL = serve(t, func(conn *net.TCPConn) {
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, good[:len(good)-1])
		})
		if r := mustRun(t, c); r.Requests != 0 || r.Errors != (record.Errors{Read: 30}) {
			t.Errorf("%d answered, %+v", r.Requests, r.Errors)
		}
	})
	t.Run("write", func(t *testing.T) {
		c := c
		// More than fits into the buffers, and a server that reads a little of it.
		c.Method, c.Body, c.Rate = "POST", strings.Repeat("x", 16<<20), 20
		c.URL = serve(t, func(conn *net.TCPConn) {
			_, _ = conn.Read(make([]byte, 100))
			time.Sleep(5 * time.Millisecond)
			reset(conn)
		})
		r := mustRun(t, c)
		if r.Requests != 0 || r.Errors.Write == 0 || r.Errors.Read+r.Errors.Write != 6 {
			t.Errorf("%d answered, %+v", r.Requests, r.Errors)
		}
	})
	t.Run("connect", func(t *testing.T) {
		c := c
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		c.URL = "http://" + ln.Addr().String() + "/"
		c.Conns, c.Timeout = 1, 300*time.Millisecond
		var gone sync.WaitGroup
		gone.Go(func() { // one answer, and then nobody is there
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_ = ln.Close()
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			_ = conn.Close()
		})
		r := mustRun(t, c)
		gone.Wait()
		if r.Requests != 1 || r.Errors.Connect == 0 || r.Errors.Timeout != 29 {
			t.Errorf("%d answered, %+v", r.Requests, r.Errors)
		}
	})
}

// A server whose process ends in the middle: the run ends with it, and tells what was
// until then. One of the two is waited for by its parent, the other is left a zombie.
func TestServerEnds(t *testing.T) {
	for _, reaped := range []bool{true, false} {
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var once, waited sync.Once
		wait := func() { waited.Do(func() { _ = cmd.Wait() }) }
		var gone sync.WaitGroup
		c := config(serve(t, each(func(int, *http.Request) string {
			once.Do(func() {
				gone.Go(func() {
					time.Sleep(200 * time.Millisecond)
					_ = cmd.Process.Kill()
					if reaped {
						wait()
					}
				})
			})
			return good
		})))
		c.PID, c.Threads, c.Duration, c.Timeout, c.Warmup = cmd.Process.Pid, 2, time.Hour, time.Hour, 0
		r, err := Run(t.Context(), c)
		gone.Wait()
		wait()
		if !errors.Is(err, ErrEnded) || !strings.Contains(err.Error(), "process "+strconv.Itoa(c.PID)) {
			t.Fatalf("got %v", err)
		}
		if r == nil || r.Requests == 0 || r.ServerCPU != nil || r.Seconds < 0.1 || r.Seconds > 1800 {
			t.Fatalf("got %+v", r)
		}
		if n := r.Histogram.TotalCount(); n != r.Due || r.Due > int64(r.Seconds*c.Rate)+2 || r.Requests+r.Errors.Timeout+r.Errors.Read != r.Due {
			t.Errorf("%d in the histogram, %d due in %v s, %d answered, %+v", n, r.Due, r.Seconds, r.Requests, r.Errors)
		}
	}
}

// A server that nobody watches ends, and the time to wait for answers is long: there is
// nobody to answer.
func TestNobodyIsLeft(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var gone sync.WaitGroup
	gone.Go(func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		_ = ln.Close()
		_, _ = http.ReadRequest(bufio.NewReader(conn))
		_ = conn.Close()
	})
	c := config("http://" + ln.Addr().String() + "/")
	c.Conns, c.Timeout = 1, time.Hour
	r := mustRun(t, c)
	gone.Wait()
	if r.Requests != 0 || r.Errors.Read != 1 || r.Errors.Timeout != 149 || r.Errors.Connect == 0 {
		t.Errorf("%d answered, %+v", r.Requests, r.Errors)
	}
}

// What is never answered is in the histogram with how long it had waited.
func TestTimeout(t *testing.T) {
	c := config(serve(t, func(conn *net.TCPConn) { _, _ = io.Copy(io.Discard, conn) }))
	c.Conns, c.Rate, c.Duration, c.Timeout = 2, 100, 300*time.Millisecond, 200*time.Millisecond
	r := mustRun(t, c)
	if r.Requests != 0 || r.Errors != (record.Errors{Timeout: 30}) || r.Due != 30 {
		t.Errorf("%d answered, %d due, %+v", r.Requests, r.Due, r.Errors)
	}
	// Two at a time go out each 200 ms; the last of the rest was due 200 ms before the end.
	if n := slower(r, c.Timeout); n < 29 || r.Latency.Max < 390e3 {
		t.Errorf("%d took the timeout or longer, the longest %v µs", n, r.Latency.Max)
	}
}

func TestRefused(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, x := range map[string]struct {
		text string
		want error
	}{
		"chunked":     {ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", ErrChunked},
		"no length":   {ok + "\r\nhi", ErrLength},
		"upgrade":     {"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", ErrSwitched},
		"large head":  {ok + "A: " + strings.Repeat("a", 20<<10), ErrHead},
		"not HTTP":    {"hello\n", ErrMalformed},
		"more behind": {good + "!", ErrMalformed},
	} {
		for _, warmup := range []int{0, 1} {
			c := config(serve(t, always(x.text)))
			c.Warmup = warmup
			if r, err := Run(t.Context(), c); !errors.Is(err, x.want) || r != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestNoServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := config("http://" + ln.Addr().String() + "/")
	_ = ln.Close()
	_, err = Run(t.Context(), c)
	if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("nobody listens: %v", err)
	}
	c.URL = serve(t, func(conn *net.TCPConn) { _, _ = io.Copy(io.Discard, conn) })
	c.Warmup, c.Timeout = 10, 100*time.Millisecond
	if _, err = Run(t.Context(), c); !errors.Is(err, errNoAnswer) {
		t.Errorf("nobody answers the warm-up: %v", err)
	}
}
