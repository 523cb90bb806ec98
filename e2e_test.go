package main

import (
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
