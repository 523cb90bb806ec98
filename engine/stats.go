package engine

import "sync/atomic"

// Stats are the figures of one loop. They lag by up to one wait.
type Stats struct {
	// Conns is the number of open connections, without promoted ones.
	Conns int

	// Inline, Offloaded and Promoted count requests by the way they took. A
	// request that called MayBlock and did not block counts as inline.
	Inline, Offloaded, Promoted uint64
}

// counts are the leader's own.
type counts struct{ inline, offloaded, promoted uint64 }

// shownStats is what other goroutines may read.
type shownStats struct {
	conns                       atomic.Int64
	inline, offloaded, promoted atomic.Uint64
}

// publish copies the leader's counts once a wait, so that counting a request is
// a plain addition.
func (n *counts) publish(to *shownStats, open int) {
	to.conns.Store(int64(open))
	to.inline.Store(n.inline)
	to.offloaded.Store(n.offloaded)
	to.promoted.Store(n.promoted)
}

// Stats returns the figures of each loop, in the order of their numbers; none
// before Serve. It may be called at any time.
func (s *Server) Stats() []Stats {
	s.mu.Lock()
	loops := s.all
	s.mu.Unlock()
	stats := make([]Stats, len(loops))
	for i, l := range loops {
		stats[i] = Stats{
			Conns:     int(l.shown.conns.Load()),
			Inline:    l.shown.inline.Load(),
			Offloaded: l.shown.offloaded.Load(),
			Promoted:  l.shown.promoted.Load(),
		}
	}
	return stats
}
