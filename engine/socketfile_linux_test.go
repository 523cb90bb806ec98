package engine

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/valyala/fasthttp"
)

// TestSocketFiles: Serve removes the socket file that it listened on, and nothing
// else.
func TestSocketFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, tc := range []struct {
		name, addr string
		keep       bool
		before     func(t *testing.T) // while it serves
		left       bool
	}{
		{"ours", "a.sock", false, func(*testing.T) {}, false},
		{"kept", "b.sock", true, func(*testing.T) {}, true},
		{"another's", "c.sock", false, func(t *testing.T) {
			if err := os.Remove("c.sock"); err != nil {
				t.Fatal(err)
			}
			ln, err := net.Listen("unix", "c.sock")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = ln.Close() })
		}, true},
		{"abstract", "@pinion-" + filepath.Base(t.TempDir()), false, func(*testing.T) {}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.addr[0] == '@' { // a file of that name is nobody's socket
				if err := os.WriteFile(tc.addr, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			ln, err := net.Listen("unix", tc.addr)
			if err != nil {
				t.Fatal(err)
			}
			s := &Server{Handler: func(*fasthttp.RequestCtx) {}, Loops: 1, KeepSocketFiles: tc.keep}
			ended := make(chan error, 1)
			go func() { ended <- s.Serve(ln) }()
			c, err := net.Dial("unix", tc.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			// An answer says that it serves.
			if _, err := c.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			tc.before(t)
			if err := s.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			if err := <-ended; !errors.Is(err, ErrServerClosed) {
				t.Error(err)
			}
			if _, err := os.Lstat(tc.addr); (err == nil) != tc.left {
				t.Errorf("the file: %v, want it left: %v", err, tc.left)
			}
		})
	}
}
