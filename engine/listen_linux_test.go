package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/valyala/fasthttp"
)

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if lns, err := Listen("unix:"+path, 2); err == nil {
		_ = lns[0].Close()
		t.Fatal("took the socket of a living server")
	}
	old.SetUnlinkOnClose(false) // as a crash leaves it
	_ = old.Close()
	s := &Server{Loops: 2, Handler: func(ctx *fasthttp.RequestCtx) { fmt.Fprint(ctx, ctx.LocalAddr()) }}
	done := make(chan error, 1)
	go func() { done <- s.ListenAndServe("unix:" + path) }()
	eventually(t, "listening", func() bool { c, err := net.Dial("unix", path); _ = closeIf(c); return err == nil })
	for range 10 {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, body := get(t, c, "/"); body != path {
			t.Fatalf("got %q", body)
		}
		_ = c.Close()
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, ErrServerClosed) {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("socket file: %v", err)
	}
}

func closeIf(c net.Conn) error {
	if c == nil {
		return nil
	}
	return c.Close()
}

func TestServeRefusesMisuse(t *testing.T) {
	if err := (&Server{}).ListenAndServe("127.0.0.1:0"); err == nil {
		t.Error("served without a handler")
	}
	s := &Server{Handler: func(*fasthttp.RequestCtx) {}}
	if err := s.Serve(); err == nil {
		t.Error("served without a listener")
	}
	if err := s.ListenAndServe("nonsense"); err == nil {
		t.Error("listened on nonsense")
	}
	addr := serve(t, s)
	_ = addr
	eventually(t, "serving", func() bool { return len(s.Stats()) > 0 })
	if err := s.ListenAndServe("127.0.0.1:0"); err == nil {
		t.Error("served twice")
	}
}

// TestPortIsTaken: two servers must not share a port by accident.
func TestPortIsTaken(t *testing.T) {
	first, err := Listen("127.0.0.1:0", 2)
	if err != nil {
		t.Fatal(err)
	}
	addr := first[0].Addr().String()
	if second, err := Listen(addr, 2); err == nil {
		for _, ln := range second {
			_ = ln.Close()
		}
		t.Errorf("%s was opened twice", addr)
	}
	for _, ln := range first {
		if ln.Addr().String() != addr {
			t.Errorf("listeners on %v and %s", ln.Addr(), addr)
		}
		_ = ln.Close()
	}
}
