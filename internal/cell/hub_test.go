package cell

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"pinion/internal/stats"
)

func newTestHub(timeout time.Duration) *hub {
	return &hub{
		timeout: timeout, log: slog.New(slog.DiscardHandler),
		relayed: stats.NewRegistry(1).Counter("x_total", "").With(),
	}
}

func newTestLink(cell int, kills *atomic.Int32) *link {
	return &link{cell: cell, out: newOutbox(), kill: func() { kills.Add(1) }}
}

// kinds takes what was sent to l.
func kinds(l *link) (all []kind) {
	for m, ok := l.out.take(); ok; m, ok = l.out.take() {
		all = append(all, kind(m.packet[0]))
	}
	return all
}

func TestHubReleasesWhoWaitsForTheDead(t *testing.T) {
	var kills atomic.Int32
	h := newTestHub(time.Hour)
	a, b, c := newTestLink(0, &kills), newTestLink(1, &kills), newTestLink(2, &kills)
	for _, l := range []*link{a, b, c} {
		h.join(l)
		h.join(l) // a second time is nothing
		if got := kinds(l); len(got) != 1 || got[0] != kindWelcome {
			t.Fatalf("after joining: %v", got)
		}
	}
	h.announce(a, appendID(nil, 1)) // in flight to c
	h.announce(a, appendID(nil, 2)) // waits for it
	for range 2 {
		if !h.confirm(b) {
			t.Fatal("b had nothing to confirm")
		}
	}
	if got := kinds(a); len(got) != 0 {
		t.Fatalf("confirmed before c did: %v", got)
	}
	h.leave(c)
	h.leave(c)
	if got := kinds(a); len(got) != 2 || got[0] != kindConfirmed || got[1] != kindConfirmed {
		t.Errorf("after c left: %v", got)
	}
	if h.join(c); len(kinds(c)) != 1 { // the one removal it was sent
		t.Error("a cell that had left joined again")
	}
	if h.confirm(b) {
		t.Error("b confirmed what it was not told")
	}
	if kills.Load() != 0 {
		t.Error("somebody was killed")
	}
}

// TestHubExcusesLateTimers: a supervisor that was stopped finds its timers due, and
// the confirmations unread.
func TestHubExcusesLateTimers(t *testing.T) {
	var kills atomic.Int32
	h := newTestHub(time.Minute)
	a, b := newTestLink(0, &kills), newTestLink(1, &kills)
	h.join(a)
	h.join(b)
	h.announce(a, appendID(nil, 1))
	late := func(by time.Duration) {
		h.mu.Lock()
		b.flight[0].at = time.Now().Add(-h.timeout - by)
		h.mu.Unlock()
		h.expire(b)
	}
	late(-time.Second)
	if kills.Load() != 0 {
		t.Fatal("killed before its time")
	}
	late(time.Hour)
	if kills.Load() != 0 {
		t.Fatal("killed although it was we who were late")
	}
	late(time.Hour)
	if kills.Load() != 1 {
		t.Fatal("excused twice")
	}
	h.confirm(b)
	h.announce(a, appendID(nil, 1))
	late(time.Millisecond)
	if kills.Load() != 2 {
		t.Fatal("not killed in time")
	}
	h.leave(b)
}

// TestHubPacketsFit: what has gathered goes in as few packets as hold it.
func TestHubPacketsFit(t *testing.T) {
	var kills atomic.Int32
	h := newTestHub(time.Hour)
	a, b := newTestLink(0, &kills), newTestLink(1, &kills)
	h.join(b)
	kinds(b)
	const each, n = 1000, 9
	for range n {
		h.announce(a, make([]byte, each*idSize))
	}
	var sizes []int
	for {
		m, ok := b.out.take()
		if !ok {
			break
		}
		sizes = append(sizes, len(m.packet)/idSize)
		h.confirm(b)
	}
	if want := []int{1000, 4000, 4000}; len(sizes) != 3 || sizes[0] != want[0] || sizes[1] != want[1] || sizes[2] != want[2] {
		t.Errorf("packets of %v ids, want %v", sizes, want)
	}
	if got := kinds(a); len(got) != n {
		t.Errorf("%d confirmations, want %d", len(got), n)
	}
	h.leave(b)
}
