package testserver

import (
	"sync"
	"testing"
)

// Shared is the servers that all tests of a binary use, each started when the first test
// asks for it. The zero value is ready; it is safe for concurrent use. A test that stops,
// kills or pauses a shared server must have it running again when it ends, and must not
// run in parallel with others.
type Shared struct {
	mu      sync.Mutex
	servers map[string]*process
}

// MariaDB returns the MariaDB server.
func (s *Shared) MariaDB(t testing.TB) *Server { t.Helper(); return s.get(t, mariaDB()) }

// Postgres returns the Postgres server.
func (s *Shared) Postgres(t testing.TB) *Server { t.Helper(); return s.get(t, postgres()) }

// Redis returns the Redis server.
func (s *Shared) Redis(t testing.TB) *Server { t.Helper(); return s.get(t, redis()) }

func (s *Shared) get(t testing.TB, k *kind) *Server {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.servers[k.name]
	if p == nil {
		p = begin(t, k, nil)
		if s.servers == nil {
			s.servers = map[string]*process{}
		}
		s.servers[k.name] = p
	}
	return &Server{t: t, process: p}
}

// Close ends the servers.
func (s *Shared) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.servers {
		p.remove()
	}
	clear(s.servers)
}

// Main runs the tests of a binary, and closes its servers before it says how they ended:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Main{M: m, Servers: &servers}) }
type Main struct {
	M       interface{ Run() int } // a *testing.M
	Servers *Shared
}

// Run implements the interface of goleak.VerifyTestMain.
func (m Main) Run() int {
	defer m.Servers.Close()
	return m.M.Run()
}
