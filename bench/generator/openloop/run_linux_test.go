package openloop

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinion/bench/record"
)

func TestInjectedStall(t *testing.T) {
	s := Stall{Rate: 1000, Stop: 100 * time.Millisecond, Every: 2 * time.Second, Duration: 2 * time.Second}
	stalling := func() string {
		var gate sync.RWMutex
		var once sync.Once
		return serve(t, each(func(int, *http.Request) string {
			once.Do(func() {
				time.AfterFunc(700*time.Millisecond, func() {
					gate.Lock()
					time.Sleep(s.Stop)
					gate.Unlock()
				})
			})
			gate.RLock()
			defer gate.RUnlock()
			return good
		}))
	}
	c := config(stalling())
	c.Conns, c.Rate, c.Duration = 32, s.Rate, s.Duration // fewer connections than are late
	open := mustRun(t, c)
	if open.Due != 2000 || open.Requests != 2000 {
		t.Errorf("%d due, %d answered", open.Due, open.Requests)
	}
	late := slower(open, s.Stop/2)
	if want := s.Slower(s.Stop / 2); float64(late) < 0.9*want {
		t.Errorf("%d requests took half of the stop, want about %v", late, want)
	}
	if want := float64(s.Quantile(0.999)) / 1e3; open.Latency.P999 < 0.92*want {
		t.Errorf("p99.9 is %v µs, want about %v", open.Latency.P999, want)
	}
	if want := float64(s.Quantile(0.98)) / 1e3; open.Latency.Max < 0.95e5 || slower(open, s.Quantile(0.98)) < 36 {
		t.Errorf("max %v µs, %d requests took %v µs, want about 40", open.Latency.Max, slower(open, s.Quantile(0.98)), want)
	}

	c.URL, c.Conns, c.Rate = stalling(), 1, 0
	closed := mustRun(t, c)
	if n := slower(closed, s.Stop/2); n == 0 || n > late/2 {
		t.Errorf("a closed loop saw %d slow requests, the open one %d", n, late)
	}
}

func TestEveryRequestGoesOut(t *testing.T) {
	for _, shape := range []Shape{Constant, Pulse, Jitter} {
		for threads := 1; threads <= 2; threads++ {
			var got atomic.Int64
			c := config(serve(t, each(func(int, *http.Request) string {
				got.Add(1)
				return good
			})))
			c.Shape, c.Threads, c.Conns, c.Warmup = shape, threads, 5, 20
			c.On, c.Off, c.Rate = 20*time.Millisecond, 30*time.Millisecond, 2000
			r := mustRun(t, c)
			due := int64(0)
			for _, d := range times(c) {
				due += int64(len(d))
			}
			if r.Due != due || r.Requests != due || got.Load() != due+20 || r.Errors != (record.Errors{}) {
				t.Errorf("%s on %d threads: %d due, want %d, %d answered, the server saw %d, errors %+v", shape, threads, r.Due, due, r.Requests, got.Load(), r.Errors)
			}
			if n := r.LagHistogram.TotalCount(); n != due {
				t.Errorf("%s: own lag of %d requests, want %d", shape, n, due)
			}
			if r.Busy < 0 || r.Busy > 1 || r.CPU <= 0 || r.ServerCPU != nil || r.Beside != nil {
				t.Errorf("got %+v", r)
			}
		}
	}
}

func TestClosedLoop(t *testing.T) {
	var got atomic.Int64
	c := config(serve(t, each(func(int, *http.Request) string {
		got.Add(1)
		return good
	})))
	c.Rate = 0
	r := mustRun(t, c)
	if r.Requests != got.Load() || r.Requests < int64(c.Conns) || r.Rate != 0 || r.OwnLag.P99 != 0 || r.OwnLag.Max != 0 {
		t.Errorf("%d answered, the server saw %d: %+v", r.Requests, got.Load(), r)
	}
}

func TestWhatIsSent(t *testing.T) {
	var wrong atomic.Int64
	c := config(serve(t, each(func(_ int, r *http.Request) string {
		if r.Method != "POST" || r.URL.Path != "/" || r.Header.Get("Accept") != "x" || r.ContentLength != 3 || r.Host == "" {
			wrong.Add(1)
		}
		return good
	})))
	c.Method, c.Body, c.Header = "POST", "abc", []string{"Accept: x"}
	if r := mustRun(t, c); wrong.Load() != 0 || r.Requests != 150 {
		t.Errorf("%d wrong of %d requests", wrong.Load(), r.Requests)
	}
	c.URL = serve(t, always("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"))
	c.Method, c.Body = "HEAD", ""
	if r := mustRun(t, c); r.Requests != 150 || r.Errors != (record.Errors{}) {
		t.Errorf("HEAD: %d answered, %+v", r.Requests, r.Errors)
	}
}

// Large in both directions: what does not fit into a socket's buffer at once.
func TestLarge(t *testing.T) {
	const size = 3 << 20
	answer := "HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(size) + "\r\n\r\n" + strings.Repeat("x", size)
	var got atomic.Int64
	c := config(serve(t, each(func(_ int, r *http.Request) string {
		got.Add(r.ContentLength)
		return answer
	})))
	c.Method, c.Body, c.Rate, c.Conns = "POST", strings.Repeat("y", size), 20, 2
	if r := mustRun(t, c); r.Requests != 6 || got.Load() != 6*size || r.Errors != (record.Errors{}) {
		t.Errorf("%d answered, the server read %d bytes, %+v", r.Requests, got.Load(), r.Errors)
	}
}

// A server that sends one byte at a time, with interim answers.
func TestDribble(t *testing.T) {
	c := config(serve(t, func(conn *net.TCPConn) {
		_ = conn.SetNoDelay(true)
		in := bufio.NewReader(conn)
		for {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			for _, b := range []byte("HTTP/1.1 100 Continue\r\n\r\n" + good) {
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
			}
		}
	}))
	c.Rate = 100
	if r := mustRun(t, c); r.Requests != 30 || r.Errors != (record.Errors{}) {
		t.Errorf("%d answered, %+v", r.Requests, r.Errors)
	}
}

func TestConnectionClose(t *testing.T) {
	var conns, abrupt atomic.Int64
	c := config(serve(t, func(conn *net.TCPConn) {
		conns.Add(1)
		always("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi")(conn)
	}))
	if r := mustRun(t, c); r.Requests != 150 || conns.Load() < 150 || r.Errors != (record.Errors{}) {
		t.Errorf("%d answered on %d connections, %+v", r.Requests, conns.Load(), r.Errors)
	}
	// A server may also close an idle connection without a word.
	c.URL = serve(t, each(func(n int, _ *http.Request) string {
		if n == 3 {
			abrupt.Add(1)
			return ""
		}
		return good
	}))
	r := mustRun(t, c)
	if r.Errors.Read != abrupt.Load() || r.Requests+r.Errors.Read != 150 {
		t.Errorf("%d answered, %d dropped by the server, %+v", r.Requests, abrupt.Load(), r.Errors)
	}
}

// A server may close a connection after any answer. Nothing is sent on what is known to be
// closed: that would be an error in writing.
func TestClosedWhenIdle(t *testing.T) {
	var conns atomic.Int64
	c := config(serve(t, func(conn *net.TCPConn) {
		conns.Add(1)
		_, _ = http.ReadRequest(bufio.NewReader(conn))
		_, _ = io.WriteString(conn, good)
	}))
	r := mustRun(t, c)
	if r.Errors.Write != 0 || r.Requests+r.Errors.Read != 150 || r.Requests == 0 || conns.Load() < r.Requests {
		t.Errorf("%d answered on %d connections, %+v", r.Requests, conns.Load(), r.Errors)
	}
}

func TestBeside(t *testing.T) {
	var mainSeen, besideSeen atomic.Int64
	c := config(serve(t, each(func(int, *http.Request) string {
		mainSeen.Add(1)
		time.Sleep(time.Millisecond)
		return good
	})))
	c.Beside = serve(t, each(func(n int, _ *http.Request) string {
		besideSeen.Add(1)
		if n == 0 {
			return "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
		}
		return good
	}))
	c.BesideConns, c.Warmup = 3, 40
	r := mustRun(t, c)
	if r.Requests != 150 || mainSeen.Load() != 190 || r.Errors != (record.Errors{}) || r.Latency.P50 < 1000 {
		t.Errorf("%d answered, the server saw %d: %+v", r.Requests, mainSeen.Load(), r)
	}
	b := r.Beside
	if b == nil || b.Requests <= 3 || b.Requests > besideSeen.Load() || b.Errors.Status > 3 || b.Latency.Max == 0 || b.Seconds != r.Seconds {
		t.Errorf("beside: the server saw %d, %+v", besideSeen.Load(), b)
	}
}

func TestCancel(t *testing.T) {
	c := config(serve(t, always(good)))
	c.Duration, c.Threads = time.Hour, 2
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Run(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// One thread with IPv6, whose sockets have other addresses.
func TestIPv6(t *testing.T) {
	ln, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hi") })}
	go server.Serve(ln) //nolint:errcheck // it ends with Close
	t.Cleanup(func() { _ = server.Close() })
	if r := mustRun(t, config("http://"+ln.Addr().String()+"/")); r.Requests != 150 || r.Errors != (record.Errors{}) {
		t.Errorf("%d answered, %+v", r.Requests, r.Errors)
	}
}

// The CPU time of a process and of its children, which work at intervals.
func TestServerCPU(t *testing.T) {
	burn := "i=0; while :; do i=$((i+1)); done"
	cmd := exec.Command("sh", "-c", "("+burn+") & "+"sleep 60; true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		_ = cmd.Wait()
	})
	// sh itself sleeps: what grows is the child's.
	for start := time.Now(); ; {
		tree, err := processCPU(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if tree > 200*time.Millisecond {
			break
		}
		if time.Since(start) > 20*time.Second {
			t.Fatalf("the tree used %v in 20 s", tree)
		}
		time.Sleep(10 * time.Millisecond)
	}
	c := config(serve(t, always(good)))
	c.PID = cmd.Process.Pid
	if r := mustRun(t, c); r.ServerCPU == nil || *r.ServerCPU <= 0 {
		t.Errorf("CPU of the server: %v of %v s", r.ServerCPU, r.Seconds)
	}
	c.PID = 1 << 22 // PID_MAX_LIMIT: there is no such process
	if r, err := Run(t.Context(), c); !errors.Is(err, unix.ESRCH) || r != nil {
		t.Errorf("a process that does not exist: %v", err)
	}
}

// Two threads on one CPU: each is ready to run for as long as the other runs.
func TestRunDelay(t *testing.T) {
	if _, err := os.Stat("/proc/thread-self/schedstat"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	burn := func(until func() bool) time.Duration {
		runtime.LockOSThread() // never unlocked: the mask goes with the thread
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			t.Error(err)
		}
		one := 0
		for !set.IsSet(one) {
			one++
		}
		set.Zero()
		set.Set(one)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			t.Error(err)
		}
		before := runDelay()
		for start := time.Now(); time.Since(start) < 10*time.Second && !until(); {
		}
		return runDelay().since(before)
	}
	idle := delay{total: time.Second, turns: 10}
	if d := (delay{idle.total + 90*time.Microsecond, idle.turns + 9}).since(idle); d != 0 {
		t.Errorf("to wake up 9 times took %v of others", d)
	}
	const enough = 50 * time.Millisecond
	var done atomic.Bool
	var wait sync.WaitGroup
	wait.Go(func() { burn(done.Load) })
	var got time.Duration
	wait.Go(func() {
		start := time.Now()
		got = burn(func() bool { return time.Since(start) > 10*enough })
		done.Store(true)
	})
	wait.Wait()
	if got < enough {
		t.Errorf("ready and without a CPU for %v of %v, want about half", got, 10*enough)
	}
}

// A request costs no allocation: ten times as many cost no more than one time.
func TestAllocations(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() //nolint:errcheck // the end
	go func() {
		buf, text := make([]byte, 4096), []byte(good)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			for {
				if _, err := conn.Read(buf); err != nil {
					break
				}
				if _, err := conn.Write(text); err != nil {
					break
				}
			}
			_ = conn.Close()
		}
	}()
	c := config("http://" + ln.Addr().String() + "/")
	c.Conns = 1
	allocations := func(rate float64) float64 {
		c.Rate = rate
		return testing.AllocsPerRun(1, func() { mustRun(t, c) })
	}
	few, many := allocations(100), allocations(2000)
	// What else the process does allocates too, but not one object for every other request.
	if many-few > (600-30)/2 {
		t.Errorf("%v allocations for 30 requests, %v for 600", few, many)
	}
}
