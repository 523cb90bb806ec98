package cell

import (
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	if got := kinds(a); !slices.Equal(got, []kind{kindConfirmed, kindConfirmed, kindFlush}) {
		t.Errorf("after c left: %v", got)
	}
	if h.join(c); len(kinds(c)) != 1 { // the one removal it was sent
		t.Error("a cell that had left joined again")
	}
	if !h.confirm(b) { // the flush
		t.Error("b was not told to forget everything")
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
		b.deadline = time.Now().Add(-by)
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

// TestHubFlush: a cell that ends without a bye has the others forget everything.
func TestHubFlush(t *testing.T) {
	var kills atomic.Int32
	h := newTestHub(time.Hour)
	var all []*link
	for i := range 5 {
		all = append(all, newTestLink(i, &kills))
		if i < 4 {
			h.join(all[i])
			kinds(all[i])
		}
	}
	a, b, c, d, stranger := all[0], all[1], all[2], all[3], all[4]
	sent := func(l *link, want ...kind) {
		t.Helper()
		if got := kinds(l); !slices.Equal(got, want) {
			t.Errorf("cell %d was sent %v, want %v", l.cell, got, want)
		}
	}

	h.leave(stranger) // it had no cache and wrote nothing
	h.bye(d)
	h.leave(d)
	for _, l := range []*link{a, b, c} {
		sent(l)
	}

	h.announce(a, appendID(nil, 1))
	sent(b, kindRemovals)
	sent(c, kindRemovals)
	h.leave(c)
	h.announce(a, appendID(nil, 2))
	sent(a, kindFlush)
	sent(b) // it has not confirmed yet
	h.confirm(b)
	sent(a, kindConfirmed)
	sent(b, kindFlush)
	h.confirm(a)
	sent(a) // b has forgotten everything but not said so, which is to remove 2 as well
	h.confirm(b)
	sent(a, kindConfirmed)
	sent(b)
	if h.confirm(a) || h.confirm(b) {
		t.Error("something was left to confirm")
	}

	h.leave(b)
	sent(a, kindFlush)
	h.expire(a) // its time is not over
	if kills.Load() != 0 {
		t.Error("somebody was killed")
	}
	h.confirm(a)
	h.leave(a) // the last one
}

// TestHubGivesTimeToEachPacket: one that had to wait for the packet before it is not
// due as soon as it is sent.
func TestHubGivesTimeToEachPacket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 2 * time.Second
		var kills atomic.Int32
		h := newTestHub(timeout)
		a, b, c := newTestLink(0, &kills), newTestLink(1, &kills), newTestLink(2, &kills)
		h.join(a)
		h.join(b)
		h.join(c)
		h.announce(a, appendID(nil, 1))
		h.announce(c, appendID(nil, 2)) // waits in front of b
		h.confirm(a)
		h.confirm(c)
		time.Sleep(timeout - 1)
		h.confirm(b) // just in time
		time.Sleep(timeout/4 - 1)
		synctest.Wait()
		if kills.Load() != 0 {
			t.Error("killed for a packet that it was sent just now")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if kills.Load() != 1 {
			t.Error("not killed in time")
		}
		for _, l := range []*link{a, b, c} {
			h.bye(l)
			h.leave(l)
		}
	})
}
