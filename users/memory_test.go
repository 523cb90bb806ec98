package users_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"pinion/users"
)

// memoryShared is a SharedCache as the interface says, without life times. A hook stands
// before each call, and may hold it up or fail it; after one that is set, and returns
// nil, the call goes on.
type memoryShared struct {
	before func(ctx context.Context, call string, id int64) error

	mu     sync.Mutex
	json   map[int64][]byte // nil: not there
	leases map[int64]users.Lease
	last   users.Lease
	calls  []string
	voided func(id int64) // under mu
}

func newMemoryShared() *memoryShared {
	return &memoryShared{json: make(map[int64][]byte), leases: make(map[int64]users.Lease)}
}

func (m *memoryShared) enter(ctx context.Context, call string, id int64) error {
	if m.before != nil {
		if err := m.before(ctx, call, id); err != nil {
			return err
		}
	}
	m.mu.Lock()
	m.calls = append(m.calls, call)
	return nil
}

func (m *memoryShared) Lookup(ctx context.Context, ids []int64) ([]users.Shared, error) {
	if err := m.enter(ctx, fmt.Sprint("lookup ", ids), ids[0]); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	found := make([]users.Shared, len(ids))
	for i, id := range ids {
		json, ok := m.json[id]
		switch {
		case ok && json == nil:
			found[i].State = users.SharedMissing
		case ok:
			found[i].State, found[i].JSON = users.SharedUser, bytes.Clone(json)
		case m.leases[id] == 0:
			m.last++
			m.leases[id], found[i].Lease = m.last, m.last
		}
	}
	return found, nil
}

func (m *memoryShared) Store(ctx context.Context, entries []users.SharedEntry) error {
	var ids []int64
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	if err := m.enter(ctx, fmt.Sprint("store ", ids), ids[0]); err != nil {
		return err
	}
	defer m.mu.Unlock()
	for _, e := range entries {
		if e.Lease != 0 && m.leases[e.ID] == e.Lease {
			delete(m.leases, e.ID)
			m.json[e.ID] = bytes.Clone(e.JSON)
		}
	}
	return nil
}

func (m *memoryShared) Void(ctx context.Context, id int64) error {
	if err := m.enter(ctx, fmt.Sprint("void ", id), id); err != nil {
		return err
	}
	defer m.mu.Unlock()
	delete(m.json, id)
	delete(m.leases, id)
	if m.voided != nil {
		m.voided(id)
	}
	return nil
}

// log returns the calls since the last log.
func (m *memoryShared) log() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() { m.calls = nil }()
	return strings.Join(m.calls, ", ")
}

func (m *memoryShared) has(id int64, name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Contains(string(m.json[id]), `"name":"`+name+`"`)
}

// memoryVoids is a VoidLog. fail stands before each call.
type memoryVoids struct {
	fail func(call string) error

	mu    sync.Mutex
	seq   int64
	voids []users.Void
}

func (m *memoryVoids) enter(call string) error {
	if m.fail != nil {
		if err := m.fail(call); err != nil {
			return err
		}
	}
	m.mu.Lock()
	return nil
}

func (m *memoryVoids) AddVoid(_ context.Context, id int64) error {
	if err := m.enter("add"); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.seq++
	m.voids = append(m.voids, users.Void{Seq: m.seq, ID: id})
	return nil
}

func (m *memoryVoids) Voids(_ context.Context, limit int) ([]users.Void, error) {
	if err := m.enter("read"); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return slices.Clone(m.voids[:min(limit, len(m.voids))]), nil
}

func (m *memoryVoids) DropVoids(_ context.Context, seqs []int64) error {
	if err := m.enter("drop"); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.voids = slices.DeleteFunc(m.voids, func(v users.Void) bool { return slices.Contains(seqs, v.Seq) })
	return nil
}

func (m *memoryVoids) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.voids)
}

// shared is a database with instances that share a cache.
type shared struct {
	gate  *gate
	cache *memoryShared
	voids *memoryVoids
}

func newShared(t testing.TB, n int) *shared {
	db := openDB(t)
	sample(t, db, n)
	return &shared{gate: newGate(db), cache: newMemoryShared(), voids: new(memoryVoids)}
}

func (sh *shared) config() users.Config {
	cfg := sh.gate.config()
	cfg.Shared, cfg.Voids = sh.cache, sh.voids
	cfg.Log = slog.New(slog.DiscardHandler)
	return cfg
}

// instance returns a Service that uses the shared cache. In a bubble.
func (sh *shared) instance(t testing.TB, cfg users.Config) *users.Service {
	s := newService(t, cfg)
	s.SetCoherent(true)
	synctest.Wait()
	return s
}
