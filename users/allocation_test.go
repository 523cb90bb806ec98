//go:build !race

package users_test

import (
	"context"
	"testing"

	"pinion/users"
)

// Keep what the calls return, or the compiler may drop them.
var (
	sinkFragment *users.Fragment
	sinkBool     bool
)

func TestNoAllocations(t *testing.T) {
	s, b := warm(t)
	for name, f := range map[string]func(){
		"CachedUser":         func() { sinkFragment = s.CachedUser(1, 1) },
		"CachedUser missing": func() { sinkFragment = s.CachedUser(1, 999) },
		"CachedUser miss":    func() { sinkFragment = s.CachedUser(1, 500) },
		"Cached":             func() { sinkBool = s.Cached(b) },
		"JSON":               func() { sinkBool = sinkFragment.JSON() == nil || sinkFragment.Missing() },
	} {
		sinkFragment = s.CachedUser(1, 1)
		if n := testing.AllocsPerRun(2000, f); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

// warm returns a service that has 20 users and a missing one cached, and a batch of them.
func warm(t testing.TB) (*users.Service, *users.Batch) {
	t.Helper()
	db := openDB(t)
	if _, err := db.Fill(context.Background(), 100, nil); err != nil {
		t.Fatal(err)
	}
	s := newService(t, newGate(db).config())
	b := &users.Batch{}
	for id := range int64(20) {
		b.IDs = append(b.IDs, id+1)
	}
	mustLoad(t, s, append(b.IDs, 999)...)
	if !s.Cached(b) {
		t.Fatal("not all cached")
	}
	return s, b
}
