package testserver

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"
)

// Credentials of the SQL servers. User owns the databases and has no other privileges:
// it respects read-only mode and the limit of connections. The administrator has all.
const (
	User     = "pinion"
	Password = "secret"
	admin    = "admin"
)

// Server is a test's view of a running server. Its methods end the test where they
// fail, and are to be called on the test's goroutine.
type Server struct {
	t testing.TB
	*process
}

// launch starts a server that ends with the test.
func launch(t testing.TB, k *kind, args []string) *Server {
	t.Helper()
	p := begin(t, k, args)
	t.Cleanup(p.remove)
	return &Server{t: t, process: p}
}

// begin starts a server, or leaves the test out where it is not installed.
func begin(t testing.TB, k *kind, args []string) *process {
	t.Helper()
	binaries, missing := k.find()
	if missing != "" {
		text := "there is no " + missing + ": install the package " + k.packages
		if os.Getenv("CI") != "" {
			t.Fatal(text)
		}
		t.Skip(text)
	}
	p, err := newProcess(k, binaries, args)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Addr is the address of the server, "127.0.0.1:port". It stays the same over restarts.
func (s *Server) Addr() string { return s.addr }

// DSN names the server as the flags of pinion do. That of an SQL server is a database
// that exists and is empty at first; tests that share a server use Database.
func (s *Server) DSN() string { return s.kind.dsn(s.addr, User) }

// Database makes an empty database and returns its DSN.
func (s *Server) Database() string {
	s.t.Helper()
	name := User + "_" + strings.ToLower(rand.Text())
	s.Admin("CREATE DATABASE " + name + s.kind.owned)
	return s.kind.dsn(s.addr, name)
}

// Admin runs one SQL statement as the administrator, on a connection of its own, and
// returns the first column of its rows as text. It ends the test if the server does not
// answer within a few seconds.
func (s *Server) Admin(text string) []string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
	defer cancel()
	if s.kind.query == nil {
		s.t.Fatalf("%s is no SQL server", s.kind.name)
	}
	found, err := s.kind.query(ctx, s.addr, admin, text)
	if err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	return found
}

// Stop ends the server in good order: it closes all connections.
func (s *Server) Stop() {
	s.t.Helper()
	s.check(s.stop())
}

// Kill ends the server, and all its processes, with SIGKILL.
func (s *Server) Kill() {
	s.t.Helper()
	s.check(s.kill())
}

// Pause stops all processes of the server (SIGSTOP). The kernel goes on accepting
// connections and data for them, which nobody answers.
func (s *Server) Pause() {
	s.t.Helper()
	s.check(s.pause())
}

// Resume lets a paused server go on.
func (s *Server) Resume() {
	s.t.Helper()
	s.check(s.resume())
}

// Restart starts the server again with the same data on the same port, and returns when
// it answers. A server that still runs is stopped first.
func (s *Server) Restart() {
	s.t.Helper()
	if s.running() {
		s.check(s.stop())
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	s.check(s.start(ctx))
}

// Log returns the last part of what the server has logged.
func (s *Server) Log() string { return s.tail() }

func (s *Server) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

const (
	startTimeout = 60 * time.Second // of a loaded machine; it takes a second or two
	stopTimeout  = 30 * time.Second
	queryTimeout = 10 * time.Second
)
