package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

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
	if runtime.GOOS != "linux" {
		t.Skip("the pipe is filled through /proc")
	}
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
		t.Fatal(err)
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
	p.stderr.wait(t, `connections cut off`)
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
