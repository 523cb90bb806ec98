package testserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var servers Shared

func TestMain(m *testing.M) { goleak.VerifyTestMain(Main{M: m, Servers: &servers}) }

// answers reports whether the server answers in a short time.
func answers(s *Server) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.kind.ping(ctx, s.addr) }()
	return <-done == nil
}

func TestServers(t *testing.T) {
	for name, start := range map[string]func(testing.TB, ...string) *Server{
		"MariaDB": MariaDB, "Postgres": Postgres, "Redis": Redis,
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			s := start(t)
			t.Logf("started in %v", time.Since(began))
			if !answers(s) {
				t.Fatal("does not answer")
			}
			var conn net.Conn
			if s.kind.query != nil {
				var err error
				if conn, err = net.Dial("tcp", s.Addr()); err != nil { // a client that keeps its connection
					t.Fatal(err)
				}
				defer conn.Close() //nolint:errcheck // nothing was written
			}
			for _, step := range []struct {
				name string
				do   func()
				want bool
			}{
				{"Pause", s.Pause, false},
				{"Resume", s.Resume, true},
				{"Stop", s.Stop, false},
				{"Restart", s.Restart, true},
				{"Kill", s.Kill, false},
				{"Restart after Kill", s.Restart, true},
				{"Restart while running", s.Restart, true},
				{"Pause again", s.Pause, false},
				{"Kill while paused", s.Kill, false},
			} {
				addr := s.Addr()
				step.do()
				if got := answers(s); got != step.want {
					t.Errorf("after %s: answers = %v", step.name, got)
				}
				if s.Addr() != addr {
					t.Errorf("after %s: address %s, was %s", step.name, s.Addr(), addr)
				}
			}
		})
	}
}

// What was committed is there after kill -9 of the server.
func TestKillKeepsCommits(t *testing.T) {
	for name, start := range map[string]func(testing.TB, ...string) *Server{"MariaDB": MariaDB, "Postgres": Postgres} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			s.Database()
			table := "t"
			if name == "MariaDB" {
				table = User + ".t"
			}
			s.Admin("CREATE TABLE " + table + " (n int)")
			s.Admin("INSERT INTO " + table + " VALUES (7)")
			s.Kill()
			s.Restart()
			if got := s.Admin("SELECT n FROM " + table); len(got) != 1 || got[0] != "7" {
				t.Errorf("read %v", got)
			}
		})
	}
}

func TestDatabase(t *testing.T) {
	for name, get := range map[string]func(testing.TB) *Server{"MariaDB": servers.MariaDB, "Postgres": servers.Postgres} {
		t.Run(name, func(t *testing.T) {
			s := get(t)
			if again := get(t); again.Addr() != s.Addr() {
				t.Error("two shared servers")
			}
			a, b := s.Database(), s.Database()
			if a == b || !strings.Contains(a, "://"+User+":"+Password+"@"+s.Addr()+"/"+User+"_") {
				t.Errorf("databases %s and %s", a, b)
			}
			// The password is asked for.
			ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
			defer cancel()
			if _, err := s.kind.query(ctx, s.addr, "nobody", "SELECT 1"); err == nil {
				t.Error("somebody unknown was let in")
			}
		})
	}
}

// A server that cannot start says why.
func TestStartFails(t *testing.T) {
	k := redis()
	binaries, missing := k.find()
	if missing != "" {
		t.Skip(missing)
	}
	p, err := newProcess(k, binaries, []string{"--no-such-option", "1"})
	if err == nil {
		p.remove()
		t.Fatal("started")
	}
	if !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("got %v", err)
	}
}

func TestMissing(t *testing.T) {
	k := &kind{programs: []string{"pinion-no-such-program"}, places: []string{"/usr/*/bin"}}
	if _, missing := k.find(); missing != "pinion-no-such-program" {
		t.Errorf("missing %q", missing)
	}
}

// Nothing of a server is left when its test has ended.
func TestRemove(t *testing.T) {
	var dir, addr string
	var children []int
	t.Run("server", func(t *testing.T) {
		s := Postgres(t)
		dir, addr = s.dir, s.addr
		children = childrenOf(s.cmd.Process.Pid)
	})
	if dir == "" {
		t.Skip("no server")
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", dir, err)
	}
	if conn, err := net.Dial("tcp", addr); err == nil {
		_ = conn.Close()
		t.Error("still listens")
	}
	for _, pid := range children {
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(stat), ") Z ") {
			t.Errorf("a child is left: %s", stat)
		}
	}
}
