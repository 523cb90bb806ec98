package rediscache

import (
	"context"
	"testing"

	"pinion/internal/testserver"
	"pinion/users"
)

// TestOldSnapshot: a Redis that is started again brings back what it had on its disk,
// without the removals since. Nothing of that may be answered or filled.
func TestOldSnapshot(t *testing.T) {
	s := testserver.Redis(t, "--save", "3600", "1000000") // on request
	c, n := run(t, Options{URL: s.DSN()})
	store(t, c, users.SharedEntry{ID: 11, Lease: lease(t, c, 11), JSON: []byte(`{"id":11}`)})
	store(t, c, users.SharedEntry{ID: 12, Lease: lease(t, c, 12)})
	granted := lease(t, c, 13)
	raw(t, s.Addr(), "SAVE")
	void(t, c, 11)
	void(t, c, 12)
	void(t, c, 13)
	s.Kill()
	s.Restart()
	wantWorking(t, c, n)
	if raw(t, s.Addr(), "EXISTS", "user:frag:11", "user:frag:12", "user:lease:13") != "3" {
		t.Fatal("the old data is not back")
	}
	wantState(t, c, 11, "")
	wantState(t, c, 12, "")
	store(t, c, users.SharedEntry{ID: 13, Lease: granted, JSON: []byte(`{"id":13}`)})
	if raw(t, s.Addr(), "EXISTS", "user:frag:13") != "0" {
		t.Error("a lease of the run before was taken")
	}
	// Another instance agrees on what is new.
	d, _ := run(t, Options{URL: s.DSN()})
	store(t, c, users.SharedEntry{ID: 4, Lease: lease(t, c, 4), JSON: []byte(`{"id":4}`)})
	wantState(t, d, 4, `{"id":4}`)
}

// TestNoRunID: a Redis that does not tell its run_id is used all the same.
func TestNoRunID(t *testing.T) {
	s := testserver.Redis(t)
	raw(t, s.Addr(), "ACL", "SETUSER", "default", "-info")
	c, _ := run(t, Options{URL: s.DSN()})
	store(t, c, users.SharedEntry{ID: 11, Lease: lease(t, c, 11), JSON: []byte(`{"id":11}`)})
	wantState(t, c, 11, `{"id":11}`)
	if got := c.incarnation.Load(); got != 0 {
		t.Errorf("incarnation %d", got)
	}
	if err := c.Void(context.Background(), 1); err != nil {
		t.Error(err)
	}
}

// TestRunIDUnknown: Redis would tell its run_id, but the answer does not come. Tracking
// stays off until it does.
func TestRunIDUnknown(t *testing.T) {
	s := shared(t)
	direct, _ := run(t, Options{URL: s.DSN()})
	for name, fault := range map[string]int32{"no answer": infoSwallow, "connection cut": infoCut} {
		t.Run(name, func(t *testing.T) {
			r := startRelay(t, s.Addr())
			c, n := run(t, Options{URL: "redis://" + r.Addr().String()})
			before := r.infos.Load()
			r.info.Store(fault)
			r.cut()
			eventually(t, "it asks on another connection again", func() bool { return r.infos.Load() >= before+2 })
			if got := n.states(); got != "-+-" {
				t.Errorf("tracking went %s", got)
			}
			r.info.Store(infoPass)
			wantWorking(t, c, n)
			if got, want := c.incarnation.Load(), direct.incarnation.Load(); got != want || got == 0 {
				t.Errorf("incarnation %d, want %d", got, want)
			}
		})
	}
}
