package users_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pinion/users"
)

// What a source says about some users is no failure of the source: the others get their
// attributes, nothing is tried again, and the breaker stays closed.
func TestPartError(t *testing.T) {
	db := openDB(t)
	sample(t, db, 60)
	g := newGate(db)
	boom := errors.New("boom")
	bad := []int64{7, 8, 999} // nobody has asked for the last one
	g.onAttributes = func(_ context.Context, next func() (map[int64][]users.Attribute, error)) (map[int64][]users.Attribute, error) {
		all, err := next() // has something for the bad ones, too
		return all, errors.Join(err, fmt.Errorf("wrapped: %w", &users.PartError{IDs: bad, Err: boom}))
	}
	cfg := g.config()
	s := newService(t, cfg)
	ids := make([]int64, 60)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	const rounds = 25
	for range rounds {
		for i, f := range mustLoad(t, s, ids...) {
			lacks := users.Degraded(0)
			if slices.Contains(bad, ids[i]) {
				lacks = users.DegradedAttributes
			}
			if f.Degraded() != lacks || hasAttribute(f, "v") != (lacks == 0) {
				t.Fatalf("user %d: got %s, degraded %d", ids[i], f.JSON(), f.Degraded())
			}
		}
		for _, id := range ids {
			s.Forget(id)
		}
	}
	if state := breaker(&cfg, "attributes"); state != 0 {
		t.Errorf("breaker in state %v", state)
	}
	if n := g.called("attributes"); n != rounds {
		t.Errorf("asked %d times, want %d", n, rounds)
	}
	if n := counter(cfg.Stats, "source_requests_total", "attributes,error"); n != rounds {
		t.Errorf("%v errors counted, want %d", n, rounds)
	}
	bad = nil
	if f := mustLoad(t, s, 7)[0]; f.Degraded() != 0 || !hasAttribute(f, "v") {
		t.Errorf("put right, and got %s", f.JSON())
	}
}

func TestPartErrorText(t *testing.T) {
	boom := errors.New("boom")
	for want, err := range map[string]*users.PartError{
		"no answer for some users: boom":              {Err: boom},
		"no answer for 2 users, of them user 7: boom": {IDs: []int64{7, 9}, Err: boom},
	} {
		if err.Error() != want || !errors.Is(err, boom) {
			t.Errorf("got %q, want %q", err.Error(), want)
		}
	}
}
