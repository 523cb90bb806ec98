package listen

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func TestParse(t *testing.T) {
	for _, s := range []string{
		":8080", "127.0.0.1:0", "[::1]:443", "localhost:65535", "unix:/run/pinion.sock", "unix:relative", "unix:@abstract",
	} {
		a, err := Parse(s)
		if err != nil {
			t.Errorf("Parse(%q): %v", s, err)
		} else if a.String() != s {
			t.Errorf("Parse(%q).String() = %q", s, a)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for s, want := range map[string]string{
		"":               "want host:port or unix:/path",
		"8080":           "want host:port or unix:/path",
		"localhost":      "want host:port or unix:/path",
		"::1:80":         "want host:port or unix:/path",
		":":              "the port must be a number from 0 to 65535",
		":65536":         "the port must be a number from 0 to 65535",
		":-1":            "the port must be a number from 0 to 65535",
		":http":          "the port must be a number from 0 to 65535",
		"unix:":          "the path is missing",
		"unix:@":         "the path is missing",
		"unix:/a\x00b":   "a path cannot hold a zero byte",
		"http://a:80":    "want host:port or unix:/path",
		"tcp:host:80:81": "want host:port or unix:/path",
	} {
		if _, err := Parse(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): error %v, want something with %q", s, err, want)
		}
	}
}

func mustListen(t *testing.T, s string) net.Listener {
	t.Helper()
	a, err := Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := a.Listen(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln
}

func listenFails(t *testing.T, s string) error {
	t.Helper()
	a, err := Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := a.Listen(context.Background())
	if err == nil {
		_ = ln.Close()
		t.Fatalf("listening on %s worked", s)
	}
	if !strings.HasPrefix(err.Error(), "listen on "+s+": ") {
		t.Errorf("error %q does not start with the address", err)
	}
	if strings.Count(err.Error(), strings.TrimPrefix(s, "unix:")) != 1 {
		t.Errorf("error %q repeats the address", err)
	}
	return err
}

func TestListenTCP(t *testing.T) {
	ln := mustListen(t, "127.0.0.1:0")
	if err := listenFails(t, ln.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("error %v, want EADDRINUSE", err)
	}
}

// socketPath keeps the path short: the kernel takes 107 bytes.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "listen")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func TestListenUnix(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("errno values differ")
	}
	path := socketPath(t)
	ln := mustListen(t, "unix:"+path)

	if err := listenFails(t, "unix:"+path); !errors.Is(err, ErrInUse) {
		t.Errorf("error %v, want ErrInUse", err)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("the listener lost its file: %v", err)
	}
	_ = conn.Close()

	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is there after Close: %v", err)
	}
}

func TestListenUnixReplacesStaleFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("errno values differ")
	}
	path := socketPath(t)
	dead := mustListen(t, "unix:"+path)
	dead.(*net.UnixListener).SetUnlinkOnClose(false) // as if the process was killed
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Fatal(err)
	}
	ln := mustListen(t, "unix:"+path)
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	_ = ln.Close()
}

func TestListenUnixKeepsOtherFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("errno values differ")
	}
	path := socketPath(t)
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := listenFails(t, "unix:"+path); !strings.HasSuffix(err.Error(), ": there is a file that is not a socket") {
		t.Errorf("error %q", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
		t.Errorf("the file was touched: %q, %v", b, err)
	}
	if err := listenFails(t, "unix:"+filepath.Join(path, "below-a-file")); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("error %v, want ENOTDIR", err)
	}
}
