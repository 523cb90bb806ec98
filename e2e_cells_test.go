package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pinion/affinity"
)

// startCells runs two cells, each on one CPU, and returns when both serve.
func startCells(t *testing.T, args ...string) *process {
	t.Helper()
	needTwoCPUs(t)
	p := start(t, append([]string{"-cells", "2", "-cpus", twoCPUs(t).String(), "-demo", "100"}, args...)...)
	for i := range 2 {
		p.stderr.wait(t, fmt.Sprintf(`msg="cell ready" cell=%d`, i))
	}
	return p
}

func needTwoCPUs(t *testing.T) {
	t.Helper()
	allowed, err := affinity.Allowed()
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		t.Skip("cells are for Linux")
	case err != nil:
		t.Fatal(err)
	case allowed.Len() >= 2:
	case os.Getenv("CI") != "":
		t.Fatal("needs two CPUs")
	default:
		t.Skip("needs two CPUs")
	}
}

// twoCPUs are the first ones that this test may use.
func twoCPUs(t *testing.T) (two affinity.Set) {
	t.Helper()
	allowed, err := affinity.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	for cpu := range allowed.All() {
		if two.Len() < 2 {
			two = two.Union(affinity.SetOf(cpu))
		}
	}
	return two
}

// cellPID is the process that a cell has now.
func (p *process) cellPID(t *testing.T, cell int) int {
	t.Helper()
	all := regexp.MustCompile(fmt.Sprintf(`msg="cell started" cell=%d pid=(\d+)`, cell)).FindAllStringSubmatch(p.stderr.String(), -1)
	if all == nil {
		t.Fatalf("cell %d was not started:\n%s", cell, p.stderr)
	}
	pid, err := strconv.Atoi(all[len(all)-1][1])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// fresh sends one request on a connection of its own.
func fresh(t *testing.T, method, url, body string, headers ...string) (int, string) {
	t.Helper()
	return do(t, method, url, body, append(headers, "Connection: close")...)
}

// TestCells looks at two cells from all sides.
func TestCells(t *testing.T) { eachEngine(t, cells) }

func cells(t *testing.T, engine string) {
	// The hash takes care that both get connections, wherever this test runs.
	p := startCells(t, "-engine", engine, "-access-log", "all", "-steer", "off")

	i := 0
	for cpu := range twoCPUs(t).All() {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.cellPID(t, i)))
		if err != nil || len(tasks) < 2 {
			t.Fatalf("cell %d: %d threads, %v", i, len(tasks), err)
		}
		for _, task := range tasks {
			status, err := os.ReadFile(task)
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("Cpus_allowed_list:\t%d\n", cpu); !strings.Contains(string(status), want) {
				t.Errorf("cell %d: %s has no %q", i, task, want)
			}
		}
		i++
	}

	// Both answer, and none is stale after a write through any of them.
	for n := range 100 {
		name := fmt.Sprintf("Name %d", n)
		if status, body := fresh(t, "PATCH", p.url+"/api/users/7", `{"name":"`+name+`"}`, jsonType, bearer); status != 200 {
			t.Fatalf("write: %d %s", status, body)
		}
		for range 4 {
			if status, body := fresh(t, "GET", p.url+"/api/users/7", ""); status != 200 || !strings.Contains(body, `"`+name+`"`) {
				t.Fatalf("after write %d: %d %s", n, status, body)
			}
		}
	}
	_, metrics := do(t, "GET", p.admin+"/metrics", "")
	for _, want := range []string{
		`go_sched_gomaxprocs_threads{cell="0"} 1`, `go_sched_gomaxprocs_threads{cell="1"} 1`, `go_goroutines{cell="supervisor"}`,
		`http_server_request_duration_seconds_count{cell="0",handler="user",method="GET",status_code="200"}`,
		`http_server_request_duration_seconds_count{cell="1",handler="user",method="GET",status_code="200"}`,
		`cell_up{cell="0"} 1`, `cell_up{cell="1"} 1`, `cell_restarts_total{cell="0"} 0`, `listener_steering{by="hash",cell="supervisor"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	for path, want := range map[string]string{
		"/health": "ok", "/ready": "ok", "/health?cell=1": "ok",
		"/": "supervisor", "/debug/pprof/cmdline?cell=1": "-cells", "/debug/pprof/cmdline": "-cells",
	} {
		if status, body := do(t, "GET", p.admin+path, ""); status != 200 || !strings.Contains(body, want) {
			t.Errorf("private port, %s: %d %s", path, status, body)
		}
	}
	if status, _ := do(t, "GET", p.admin+"/metrics?cell=2", ""); status != 404 {
		t.Errorf("a cell that is not there: %d", status)
	}

	stop(t, p)
	for i := range 2 {
		if want := fmt.Sprintf(`"cell":%d}`, i); !strings.Contains(p.stdout.String(), want) {
			t.Errorf("no access line ends with %s", want)
		}
	}
}

// TestCellKilled kills one of two cells: it comes back, and who connects meanwhile
// is answered.
func TestCellKilled(t *testing.T) { eachEngine(t, cellKilled) }

func cellKilled(t *testing.T, engine string) {
	p := startCells(t, "-engine", engine)
	old := p.cellPID(t, 1)
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.stderr.wait(t, `msg="cell ended" cell=1 status="signal: killed" restart_in=100ms`)
	for range 20 { // some of them wait for the new process
		if status, body := fresh(t, "GET", p.url+"/api/users/1", ""); status != 200 {
			t.Errorf("meanwhile: %d %s", status, body)
		}
	}
	p.stderr.wait(t, fmt.Sprintf(`(?s)pid=%d.*msg="cell ended" cell=1.*msg="cell ready" cell=1`, old))
	if now := p.cellPID(t, 1); now == old {
		t.Error("it has the same pid")
	}
	if _, metrics := do(t, "GET", p.admin+"/metrics", ""); !strings.Contains(metrics, `cell_restarts_total{cell="1"} 1`) {
		t.Error("/metrics does not count the restart")
	}
	if status, body := do(t, "GET", p.admin+"/ready", ""); status != 200 {
		t.Errorf("ready: %d %s", status, body)
	}
	stop(t, p)
}

// TestSupervisorStopped: a write that the other cell cannot be told of is not
// reported as done.
func TestSupervisorStopped(t *testing.T) {
	p := startCells(t)
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	status, body := fresh(t, "PATCH", p.url+"/api/users/1", `{"name":"Stopped"}`, jsonType, bearer)
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if status != 503 || !strings.Contains(body, "not known whether this write was stored") {
		t.Errorf("stopped: %d %s", status, body)
	}
	status, body = fresh(t, "PATCH", p.url+"/api/users/1", `{"name":"Going"}`, jsonType, bearer)
	if status != 200 {
		t.Errorf("going on: %d %s", status, body)
	}
	stop(t, p)
}

// TestSignalToAll: a service manager signals every process, and some twice.
func TestSignalToAll(t *testing.T) {
	for name, order := range map[string][]int{
		"supervisor first": {-1, 0, 1}, "cells first": {0, 1, -1}, "a cell twice": {1, 1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			p := startCells(t, "-drain-delay", "300ms")
			for _, to := range order {
				pid := p.cmd.Process.Pid
				if to >= 0 {
					pid = p.cellPID(t, to)
				}
				if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
					t.Fatal(err)
				}
			}
			if err := p.wait(); err != nil {
				t.Errorf("%v\n%s", err, p.stderr)
			}
			if n := strings.Count(p.stderr.String(), "msg=stopped"); n != 2 {
				t.Errorf("%d cells were stopped in order, want 2\n%s", n, p.stderr)
			}
		})
	}
}

// TestFileEdited: a cell that is started again is the cell that it was, whatever has
// become of the file of flags since.
func TestFileEdited(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pinion.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tokens := filepath.Join(t.TempDir(), "tokens")
	digest := sha256.Sum256([]byte("secret"))
	if err := os.WriteFile(tokens, fmt.Appendf(nil, "ci:%x\n", digest), 0o600); err != nil {
		t.Fatal(err)
	}
	write("access-log: all\nsteer: off\ntokens: " + tokens + "\n")
	p := startCells(t, "-config", file)
	write("access-log: off\ndb: sqlite:other.db\n")
	if err := os.Remove(tokens); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(p.cellPID(t, 1), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.stderr.wait(t, `(?s)msg="cell ended" cell=1.*msg="cell ready" cell=1`)
	for range 40 {
		status, body := fresh(t, "PATCH", p.url+"/api/users/1", `{"name":"x"}`, jsonType, "Authorization: Bearer secret")
		if status != 200 {
			t.Fatalf("%d %s", status, body)
		}
	}
	stop(t, p)
	if n := strings.Count(p.stdout.String(), `"cell":1}`); n == 0 {
		t.Error("cell 1 no longer writes an access log")
	}
	if _, err := os.Stat(filepath.Join(p.cmd.Dir, "other.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("another database: %v", err)
	}
}

// TestSupervisorKilled: no cell outlives its supervisor, whatever ends that.
func TestSupervisorKilled(t *testing.T) {
	p := startCells(t)
	pids := []int{p.cellPID(t, 0), p.cellPID(t, 1)}
	p.kill()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		left := 0
		for _, pid := range pids {
			// A zombie is not reaped by us, and holds nothing.
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err == nil && !strings.Contains(string(stat), ") Z ") {
				left++
			}
		}
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d cells are left", left)
		}
	}
}

// TestSignalsDrain ends the server by the other signals, with an open request.
func TestSignalsDrain(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		for _, kind := range []string{"off", "2"} {
			t.Run(fmt.Sprintf("%d/cells %s", sig, kind), func(t *testing.T) {
				var p *process
				if kind == "2" {
					p = startCells(t)
				} else {
					p = start(t, "-cells", kind, "-demo", "10")
				}
				if err := p.cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				if err := p.wait(); err != nil {
					t.Errorf("%v\n%s", err, p.stderr)
				}
				if !strings.Contains(p.stderr.String(), "msg=draining") {
					t.Error("it did not drain")
				}
			})
		}
	}
}

// TestCellsOnOneSocket: a socket file has one queue, from which all cells take.
func TestCellsOnOneSocket(t *testing.T) {
	needTwoCPUs(t)
	cmd := command(t, "-cells", "2", "-addr", "unix:public.sock", "-admin", "unix:admin.sock", "-demo", "5")
	p := launch(t, cmd)
	p.stderr.wait(t, `msg="cell ready" cell=1`)
	client := http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(cmd.Dir, "public.sock"))
		},
	}}
	for range 20 {
		resp, err := client.Get("http://pinion/api/users/5")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Error(resp.Status)
		}
	}
	// The file is the supervisor's: a cell that ends leaves it.
	if err := syscall.Kill(p.cellPID(t, 0), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.stderr.wait(t, `(?s)msg="cell ended" cell=0.*msg="cell ready" cell=0`)
	resp, err := client.Get("http://pinion/api/users/5")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	stop(t, p)
	for _, name := range []string{"public.sock", "admin.sock"} {
		if _, err := os.Stat(filepath.Join(cmd.Dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left behind: %v", name, err)
		}
	}
}

// TestSteered connects from each CPU, and must be answered by the cell on it.
func TestSteered(t *testing.T) {
	for _, how := range []string{"auto", "cpu"} {
		t.Run(how, func(t *testing.T) {
			p := startCells(t, "-steer", how)
			p.stderr.wait(t, `msg="connections are spread" by=(node|cpu)`)
			launcher := affinity.NewLauncher()
			defer launcher.Close()
			cell := 0
			for cpu := range twoCPUs(t).All() {
				before := pings(t, p, cell)
				const n = 20
				for range n {
					pingFrom(t, launcher, cpu, p.url)
				}
				if got := pings(t, p, cell) - before; got != n {
					t.Errorf("from CPU %d, cell %d answered %d of %d", cpu, cell, got, n)
				}
				cell++
			}
			stop(t, p)
		})
	}
}

// pingFrom connects on a thread that runs on cpu.
func pingFrom(t *testing.T, launcher *affinity.Launcher, cpu int, url string) {
	t.Helper()
	err := launcher.Do(affinity.Placement{CPUs: affinity.SetOf(cpu)}, func() error {
		c, err := net.DialTimeout("tcp", strings.TrimPrefix(url, "http://"), patience)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		_ = c.SetDeadline(time.Now().Add(patience))
		if _, err := io.WriteString(c, "GET /api/ping HTTP/1.1\r\nHost: pinion\r\nConnection: close\r\n\r\n"); err != nil {
			return err
		}
		line, err := bufio.NewReader(c).ReadString('\n')
		if err == nil && !strings.Contains(line, " 200 ") {
			err = errors.New(line)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// pings is how many a cell has answered.
func pings(t *testing.T, p *process, cell int) int {
	t.Helper()
	_, metrics := do(t, "GET", p.admin+"/metrics", "")
	series := fmt.Sprintf(`http_server_request_duration_seconds_count{cell="%d",handler="ping",method="GET",status_code="200"} (\d+)`, cell)
	m := regexp.MustCompile(strings.NewReplacer("{", `\{`, "}", `\}`).Replace(series)).FindStringSubmatch(metrics)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNothingLeft: a start that fails late takes its socket file along.
func TestNothingLeft(t *testing.T) {
	needTwoCPUs(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	p := launch(t, command(t, "-cells", "2", "-addr", "unix:public.sock", "-admin", taken.Addr().String()))
	_ = p.wait()
	if status := p.cmd.ProcessState.ExitCode(); status != 1 {
		t.Errorf("exit status %d\n%s", status, p.stderr)
	}
	if _, err := os.Stat(filepath.Join(p.cmd.Dir, "public.sock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket file is left behind: %v", err)
	}
}

// TestCellsThatCannotStart end the whole server, with the status of a server that
// is one process.
func TestCellsThatCannotStart(t *testing.T) {
	needTwoCPUs(t)
	corrupt := filepath.Join(t.TempDir(), "corrupt.db")
	if err := os.WriteFile(corrupt, []byte(strings.Repeat("not a database", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args   []string
		status int
		line   string
	}{
		{[]string{"-cells", "2", "-db", "sqlite::memory:"}, 2, "server: -db: sqlite::memory: belongs to one process"},
		{[]string{"-cells", "1024"}, 2, "server: -cells: 1024 cells need at least as many CPUs"},
		{[]string{"-cells", "2", "-db", "sqlite:" + corrupt}, 1, "server: open database " + corrupt},
	} {
		p := launch(t, command(t, append([]string{"-addr", "127.0.0.1:0", "-admin", ""}, tc.args...)...))
		_ = p.wait()
		if status := p.cmd.ProcessState.ExitCode(); status != tc.status {
			t.Errorf("%q: exit status %d, want %d\n%s", tc.args, status, tc.status, p.stderr)
		}
		if !strings.Contains(p.stderr.String(), tc.line) {
			t.Errorf("%q: no line %q:\n%s", tc.args, tc.line, p.stderr)
		}
		if n := strings.Count("\n"+p.stderr.String(), "\nserver: "); n != 1 {
			t.Errorf("%q: %d lines say why, want 1:\n%s", tc.args, n, p.stderr)
		}
	}
}
