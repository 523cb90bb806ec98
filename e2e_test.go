package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pinion/internal/config"
)

// patience bounds what a test waits for; none waits this long when it passes.
const patience = 30 * time.Second

// binaryDir holds the server that the tests run; TestMain removes it.
var binaryDir string

// binary builds the server once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binaryDir, "server")
	cmd := exec.Command("go", "build", "-ldflags", "-X main.version=e2e", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	var err error
	if binaryDir, err = os.MkdirTemp("", "pinion-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(binaryDir)
	os.Exit(code)
}

// command is the server with args, ended with the test at the latest.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir}
	return cmd
}

// process is a running server.
type process struct {
	cmd    *exec.Cmd
	exit   error  // valid once stderr.gone is closed
	url    string // of the public port
	admin  string // of the private port
	stderr *lines
	stdout *bytes.Buffer
}

// lines collects what a process prints and lets a test wait for some of it.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
	seen chan struct{}
	gone chan struct{} // closed when the process has ended; may be nil
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	select {
	case l.seen <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// wait returns the first submatch of pattern as soon as it was printed. It
// pokes the server meanwhile.
func (l *lines) wait(t *testing.T, pattern string, poke ...func()) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	timeout := time.After(patience)
	for {
		for _, f := range poke {
			f()
		}
		if m := re.FindStringSubmatch(l.String()); m != nil {
			return m[len(m)-1]
		}
		select {
		case <-l.seen:
		case <-time.After(100 * time.Millisecond):
		case <-l.gone:
			t.Fatalf("it ended without %q; this was printed:\n%s", pattern, l.String())
		case <-timeout:
			t.Fatalf("%q was not printed; this was:\n%s", pattern, l.String())
		}
	}
}

// start runs the server on free ports and waits until it serves.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := launch(t, command(t, append([]string{"-addr", "127.0.0.1:0", "-admin", "127.0.0.1:0"}, args...)...))
	p.admin = "http://" + p.stderr.wait(t, `msg="private port open".* addr=(\S+)`)
	p.url = "http://" + p.stderr.wait(t, `msg=serving.* addr=(\S+)`)
	return p
}

// launch starts cmd and watches what it prints and when it ends.
func launch(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{
		cmd:    cmd,
		stdout: new(bytes.Buffer),
		stderr: &lines{seen: make(chan struct{}, 1), gone: make(chan struct{})},
	}
	cmd.Stderr = p.stderr
	if cmd.Stdout == nil {
		cmd.Stdout = p.stdout
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.exit = cmd.Wait()
		close(p.stderr.gone)
	}()
	t.Cleanup(func() { p.kill() })
	return p
}

// kill is kill -9, without effect on a process that has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.stderr.gone
}

// wait returns how the process ended.
func (p *process) wait() error {
	<-p.stderr.gone
	return p.exit
}

// eachEngine runs a test with every transport of this system.
func eachEngine(t *testing.T, test func(t *testing.T, engine string)) {
	for _, engine := range config.Engines() {
		t.Run(engine, func(t *testing.T) { test(t, engine) })
	}
}

// do sends one request and returns status and body.
func do(t *testing.T, method, url, body string, headers ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

const (
	bearer   = "Authorization: Bearer token123"
	jsonType = "Content-Type: application/json"
)

// TestRoundTrip is the README's story: start, read, write, read, stop.
func TestRoundTrip(t *testing.T) { eachEngine(t, roundTrip) }

func roundTrip(t *testing.T, engine string) {
	p := start(t, "-engine", engine, "-demo", "100", "-access-log", "all")

	status, body := do(t, "GET", p.url+"/api/users?ids=1,2,999999", "")
	var batch struct {
		Users []struct {
			ID   int
			Name string
		}
		Missing []int
	}
	if err := json.Unmarshal([]byte(body), &batch); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if status != 200 || len(batch.Users) != 2 || batch.Users[0].ID != 1 || len(batch.Missing) != 1 || batch.Missing[0] != 999999 {
		t.Errorf("batch: %d %s", status, body)
	}

	newUser := `{"name":"Ana","email":"ana@example.com"}`
	status, body = do(t, "POST", p.url+"/api/users", newUser, jsonType)
	if status != 401 {
		t.Errorf("write without a token: %d %s", status, body)
	}
	status, body = do(t, "POST", p.url+"/api/users", newUser, jsonType, bearer)
	if status != 201 || !strings.HasPrefix(body, `{"id":101,"name":"Ana"`) {
		t.Errorf("create: %d %s", status, body)
	}
	if _, read := do(t, "GET", p.url+"/api/users/101", ""); read != body {
		t.Errorf("read %s\nwant %s", read, body)
	}

	for path, want := range map[string]string{
		"/metrics":      `http_server_request_duration_seconds_count{handler="user",method="GET",status_code="200"} 1`,
		"/health":       `{"status":"ok"}`,
		"/ready":        `{"status":"ok"}`,
		"/debug/pprof/": "goroutine",
	} {
		status, body := do(t, "GET", p.admin+path, "")
		if status != 200 || !strings.Contains(body, want) {
			t.Errorf("private port, %s: %d, no %s", path, status, want)
		}
	}
	for _, name := range []string{
		`build_info{`, "go_goroutines", "process_open_fds", "engine_connections", "access_log_dropped_total 0",
		`cache_requests_total{layer="l1",result="miss"}`, `source_requests_total{result="ok",source="sql"}`,
		`source_duration_seconds_count{source="sql"}`, "http_server_panics_total 0",
	} {
		if _, metrics := do(t, "GET", p.admin+"/metrics", ""); !strings.Contains(metrics, name) {
			t.Errorf("/metrics has no %s", name)
		}
	}

	stop(t, p)
	entries := strings.Split(strings.TrimSpace(p.stdout.String()), "\n")
	if len(entries) != 4 {
		t.Fatalf("%d access lines, want 4:\n%s", len(entries), p.stdout)
	}
	for _, line := range entries {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

// TestReaderGone: `server | head` must not end the server.
func TestReaderGone(t *testing.T) {
	cmd := command(t, "-addr", "127.0.0.1:0", "-admin", "127.0.0.1:0", "-db", "sqlite::memory:", "-access-log", "all")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := launch(t, cmd)
	url := "http://" + p.stderr.wait(t, `msg=serving.* addr=(\S+)`)
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	do(t, "GET", url+"/api/ping", "")
	p.stderr.wait(t, `level=(WARN|ERROR) .*access log`)
	if status, _ := do(t, "GET", url+"/api/ping", ""); status != 200 {
		t.Errorf("status %d", status)
	}
	stop(t, p)
}

// TestLogStalls: a stderr that nobody reads must not keep requests or the end
// from happening.
func TestLogStalls(t *testing.T) { eachEngine(t, logStalls) }

func logStalls(t *testing.T, engine string) {
	cmd := command(t, "-engine", engine, "-addr", "unix:public.sock", "-admin", "", "-db", "sqlite::memory:", "-log-level", "debug")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	socket := filepath.Join(cmd.Dir, "public.sock")
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("unix", socket); err == nil {
			_ = c.Close()
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	// Fill the pipe from this side of it, so that nothing of the server's fits.
	full, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/2", cmd.Process.Pid), os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("no way to fill the pipe: %v", err)
	}
	_ = full.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	for {
		if _, err := full.Write(make([]byte, 4096)); err != nil {
			break
		}
	}
	_ = full.Close()
	client := http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	for range 3 {
		req, err := http.NewRequest("GET", "http://pinion/api/users/5/address", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// stop sends SIGTERM and expects exit status 0.
func stop(t *testing.T, p *process) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.wait(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, p.stderr)
	}
}

// TestUnixSockets serves both ports on socket files.
func TestUnixSockets(t *testing.T) { eachEngine(t, unixSockets) }

func unixSockets(t *testing.T, engine string) {
	cmd := command(t, "-engine", engine, "-addr", "unix:public.sock", "-admin", "unix:admin.sock", "-demo", "5", "-db", "sqlite::memory:")
	p := launch(t, cmd)
	p.stderr.wait(t, `msg=serving`)
	for socket, path := range map[string]string{"public.sock": "/api/users/5", "admin.sock": "/ready"} {
		client := http.Client{Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(cmd.Dir, socket))
			},
		}}
		resp, err := client.Get("http://pinion" + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Errorf("%s: %d", socket, resp.StatusCode)
		}
	}
	stop(t, p)
	if _, err := os.Stat(filepath.Join(cmd.Dir, "public.sock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket file is left behind: %v", err)
	}
}

// TestKilled: what was answered with 201 is there after kill -9.
func TestKilled(t *testing.T) { eachEngine(t, killed) }

func killed(t *testing.T, engine string) {
	db := "sqlite:" + filepath.Join(t.TempDir(), "users.db")
	p := start(t, "-engine", engine, "-db", db, "-demo", "10")
	var ids []int
	for i := range 20 {
		status, body := do(t, "POST", p.url+"/api/users", fmt.Sprintf(`{"name":"N%d","email":"n@example.com"}`, i), jsonType, bearer)
		var u struct{ ID int }
		if err := json.Unmarshal([]byte(body), &u); err != nil || status != 201 {
			t.Fatalf("%d %s", status, body)
		}
		ids = append(ids, u.ID)
	}
	p.kill()
	http.DefaultClient.CloseIdleConnections()

	p = start(t, "-engine", engine, "-db", db, "-demo", "10")
	for i, id := range ids {
		want := fmt.Sprintf(`"name":"N%d"`, i)
		if status, body := do(t, "GET", fmt.Sprintf("%s/api/users/%d", p.url, id), ""); status != 200 || !strings.Contains(body, want) {
			t.Errorf("user %d: %d %s", id, status, body)
		}
	}
	stop(t, p)
}

// TestPinned looks at every thread of a server that was told to use one CPU.
func TestPinned(t *testing.T) { eachEngine(t, pinned) }

func pinned(t *testing.T, engine string) {
	if runtime.GOOS != "linux" {
		t.Skip("affinity is for Linux")
	}
	cpu := firstAllowedCPU(t)
	p := start(t, "-engine", engine, "-cpus", cpu, "-demo", "100")
	for range 50 { // let the runtime make threads
		do(t, "GET", p.url+"/api/users?ids=1,2,3", "")
	}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.cmd.Process.Pid))
	if err != nil || len(tasks) < 2 {
		t.Fatalf("%d threads, %v", len(tasks), err)
	}
	for _, task := range tasks {
		status, err := os.ReadFile(task)
		if err != nil {
			t.Fatal(err)
		}
		if want := "Cpus_allowed_list:\t" + cpu + "\n"; !strings.Contains(string(status), want) {
			t.Errorf("%s has no %q", task, want)
		}
	}
	if _, metrics := do(t, "GET", p.admin+"/metrics", ""); !strings.Contains(metrics, "\ngo_sched_gomaxprocs_threads 1\n") {
		t.Error("GOMAXPROCS on /metrics is not 1")
	}
	p.stderr.wait(t, `msg="cpus decided".*gomaxprocs=1`)
	stop(t, p)
}

// firstAllowedCPU is a CPU this test may run on.
func firstAllowedCPU(t *testing.T) string {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`Cpus_allowed_list:\s+(\d+)`).FindSubmatch(status)
	if m == nil {
		t.Fatal("no Cpus_allowed_list")
	}
	return string(m[1])
}

// TestDrain follows a stop: readiness goes first, the open request is answered,
// then everything ends.
func TestDrain(t *testing.T) { eachEngine(t, drain) }

func drain(t *testing.T, engine string) {
	p := start(t, "-engine", engine, "-db", "sqlite::memory:", "-demo", "5", "-drain-delay", "2s", "-drain-timeout", "10s")
	addr := strings.TrimPrefix(p.url, "http://")
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	// A request whose body is on its way when the signal comes.
	const head = "POST /api/users/lookup HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n"
	if _, err := io.WriteString(conn, head+`{"ids"`); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.stderr.wait(t, `msg=draining`)
	for _, url := range []string{p.url, p.admin} {
		if status, body := do(t, "GET", url+"/ready", ""); status != 503 || !strings.Contains(body, "draining") {
			t.Errorf("%s/ready while draining: %d %s", url, status, body)
		}
		if status, _ := do(t, "GET", url+"/health", ""); status != 200 {
			t.Errorf("%s/health while draining: %d", url, status)
		}
	}
	for { // until the listener is closed
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			break
		}
		_ = c.Close()
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := io.WriteString(conn, `:[1]}`); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(bufio.NewReader(conn))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(answer, []byte("HTTP/1.1 200 OK")) || !bytes.Contains(answer, []byte("Connection: close")) {
		t.Errorf("the open request got %s", answer)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := p.wait(); err != nil {
		t.Errorf("exit: %v\n%s", err, p.stderr)
	}
}

// TestStopAtOnce sends the signal as soon as the server says that it serves,
// when the goroutine that does so may not have run yet.
func TestStopAtOnce(t *testing.T) { eachEngine(t, stopAtOnce) }

func stopAtOnce(t *testing.T, engine string) {
	for range 10 {
		stop(t, start(t, "-engine", engine, "-db", "sqlite::memory:"))
	}
}

// TestEnvironment: a value that turns out wrong late is told by where it came
// from.
func TestEnvironment(t *testing.T) {
	cmd := command(t)
	cmd.Env = append(cmd.Env, "PINION_CPUS=4095")
	out, err := cmd.CombinedOutput()
	if err == nil || !bytes.HasPrefix(out, []byte("server: PINION_CPUS: CPU 4095 is not allowed")) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestDrainOutOfTime: a client that never finishes cannot keep the server up.
func TestDrainOutOfTime(t *testing.T) { eachEngine(t, drainOutOfTime) }

func drainOutOfTime(t *testing.T, engine string) {
	p := start(t, "-engine", engine, "-db", "sqlite::memory:", "-drain-timeout", "200ms")
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(p.url, "http://"), patience)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "POST /api/users HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	do(t, "GET", p.url+"/api/ping", "") // by now the other one was accepted
	stop(t, p)
	p.stderr.wait(t, `1 connections cut off`)
}

// TestWrongUse: one line on stderr, status 2, and nothing was started.
func TestWrongUse(t *testing.T) {
	yaml := filepath.Join(t.TempDir(), "pinion.yaml")
	if err := os.WriteFile(yaml, []byte("addr: 127.0.0.1:0\nadddr: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("ci=abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string // in the line
	}{
		{[]string{"-cpus", "0-"}, "-cpus"},
		{[]string{"-cpus", "4095"}, "-cpus: CPU 4095 is not allowed here"},
		{[]string{"-cpus", ","}, "-cpus"},
		{[]string{"-db", "ftp://x"}, "ftp"},
		{[]string{"-addr", "nonsense"}, "nonsense"},
		{[]string{"-demo", "-1"}, "-demo"},
		{[]string{"-engine", "turbo"}, "turbo"},
		{[]string{"-access-log", "some"}, "some"},
		{[]string{"-l1-bytes", "1"}, "-l1-bytes"},
		{[]string{"-config", yaml}, `pinion.yaml:2: unknown key "adddr"`},
		{[]string{"-config", yaml + "x"}, "pinion.yamlx"},
		{[]string{"-tokens", tokens}, "line 1"},
		{[]string{"-demo", "x\ny"}, "-demo"},
		{[]string{"-nonsense"}, "-nonsense"},
		{[]string{"nonsense"}, "nonsense"},
	} {
		fails(t, 2, c.want, c.args...)
	}
}

// TestCannotStart: what is wrong with the host is status 1, and one line too.
func TestCannotStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	corrupt := filepath.Join(t.TempDir(), "corrupt.db")
	if err := os.WriteFile(corrupt, bytes.Repeat([]byte("not a database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := taken.Addr().String()
	fails(t, 1, addr, "-addr", addr, "-db", "sqlite::memory:", "-admin", "")
	fails(t, 1, addr, "-addr", "127.0.0.1:0", "-db", "sqlite::memory:", "-admin", addr)
	fails(t, 1, corrupt, "-db", "sqlite:"+corrupt, "-addr", "127.0.0.1:0", "-admin", "")
	fails(t, 1, "/proc/no where/x.db", "-db", "sqlite:/proc/no\nwhere/x.db", "-addr", "127.0.0.1:0", "-admin", "")
	fails(t, 1, "/proc/nowhere/x.db", "-db", "sqlite:/proc/nowhere/x.db", "-addr", "127.0.0.1:0", "-admin", "")
}

// TestReadOnlyDatabase: a database that can be read but not written is told at
// the start, not by the first write that fails.
func TestReadOnlyDatabase(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "ro.db")
	stop(t, start(t, "-db", "sqlite:"+db, "-demo", "5"))
	if err := os.Chmod(db, 0o444); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "-db", "sqlite:"+db, "-addr", "127.0.0.1:0", "-admin", "")
	if os.Getuid() == 0 { // who may write to everything
		for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(binaryDir, 0o755); err != nil {
			t.Fatal(err)
		}
		asNobody(cmd)
	}
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !bytes.Contains(out, []byte("server: open database "+db)) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestDatabaseRemoved: a file that is gone takes what is written with it, so
// the server is no longer ready.
func TestDatabaseRemoved(t *testing.T) { eachEngine(t, databaseRemoved) }

func databaseRemoved(t *testing.T, engine string) {
	db := filepath.Join(t.TempDir(), "users.db")
	p := start(t, "-engine", engine, "-db", "sqlite:"+db)
	if status, _ := do(t, "GET", p.url+"/ready", ""); status != 200 {
		t.Fatalf("ready: %d", status)
	}
	if err := os.Remove(db); err != nil {
		t.Fatal(err)
	}
	p.stderr.wait(t, `not ready: database unreachable`, func() { do(t, "GET", p.url+"/ready", "") })
	if status, body := do(t, "GET", p.url+"/ready", ""); status != 503 {
		t.Errorf("ready without a file: %d %s", status, body)
	}
	stop(t, p)
}

// fails runs the server and expects it to end with code after one line.
func fails(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	cmd := command(t, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code {
		t.Errorf("%v: %v, want exit status %d; it said:\n%s", args, err, code, &stderr)
		return
	}
	var told []string // all but the ordinary log
	for line := range strings.Lines(stderr.String()) {
		if !strings.HasPrefix(line, "time=") {
			told = append(told, line)
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], want) {
		t.Errorf("%v: want one line with %q, got:\n%s", args, want, &stderr)
	}
	if code == 2 && (stdout.Len() > 0 || strings.Contains(stderr.String(), "serving")) {
		t.Errorf("%v: it did more than complain:\n%s%s", args, &stdout, &stderr)
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"--help"}, {"help"}} {
		out, err := command(t, args...).Output()
		if err != nil || !bytes.Contains(out, []byte("-addr")) || !bytes.Contains(out, []byte("PINION_")) {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	out, err := command(t, "version").Output()
	if err != nil || !strings.HasPrefix(string(out), "pinion e2e ") {
		t.Errorf("version: %v %q", err, out)
	}
}
