package users_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pinion/internal/stats"
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

// What one instance has loaded, the others need not ask the sources for.
func TestSharedHit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sh := newShared(t, 3)
		first := sh.config()
		second := sh.config()
		a, b := sh.instance(t, first), sh.instance(t, second)
		mustLoad(t, a, 1, 2, 99)
		synctest.Wait()
		if log := sh.cache.log(); log != "lookup [1 2 99], store [1 2 99]" {
			t.Error(log)
		}
		f := mustLoad(t, b, 99, 3, 2)
		if !f[0].Missing() || !hasName(f[1], "user 3") || !hasName(f[2], "user 2") {
			t.Errorf("got %s, %s, %s", f[0].JSON(), f[1].JSON(), f[2].JSON())
		}
		synctest.Wait()
		if log := sh.cache.log(); log != "lookup [99 3 2], store [3]" || sh.gate.log() != "[1 2 99] [3]" {
			t.Error(log, sh.gate.log())
		}
		for labels, want := range map[string]float64{"l2,hit": 1, "l2,negative": 1, "l2,miss": 1, "l2,error": 0} {
			if got := counter(second.Stats, "cache_requests_total", labels); got != want {
				t.Errorf("cache_requests_total{%s} = %v, want %v", labels, got, want)
			}
		}
		if n := counter(first.Stats, "cache_fills_total", "l2,stored"); n != 3 {
			t.Errorf("%v entries stored", n)
		}
		// In L1 of both now.
		mustLoad(t, a, 1, 2, 99)
		mustLoad(t, b, 99, 3, 2)
		if log := sh.cache.log(); log != "" {
			t.Error(log)
		}
	})
}

// Nobody waits for the filling of the cache, and what it cannot take is dropped.
func TestSharedStoreIsAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 5000
		sh := newShared(t, 0) // "not there" is as good as a user
		release := make(chan struct{})
		sh.cache.before = func(_ context.Context, call string, _ int64) error {
			if strings.HasPrefix(call, "store") {
				hold(release)
			}
			return nil
		}
		cfg := sh.config()
		cfg.Limits.Shared.Timeout = time.Hour
		s := sh.instance(t, cfg)
		start := time.Now()
		for id := int64(1); id <= n; id++ {
			mustLoad(t, s, id)
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("loads waited %v", d)
		}
		close(release)
		synctest.Wait()
		stored, dropped := counter(cfg.Stats, "cache_fills_total", "l2,stored"), counter(cfg.Stats, "cache_fills_total", "l2,dropped")
		if stored+dropped != n || stored < 4096 || dropped == 0 {
			t.Errorf("%v stored, %v dropped of %d", stored, dropped, n)
		}
	})
}

// Only what is whole is shared.
func TestSharedNotDegraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sh := newShared(t, 2)
		broken := errors.New("broken")
		sh.gate.onMembers = func(context.Context, func() (map[int64]users.Member, error)) (map[int64]users.Member, error) {
			return nil, broken
		}
		s := sh.instance(t, sh.config())
		if f := mustLoad(t, s, 1, 99); f[0].Degraded() != users.DegradedMember || !f[1].Missing() {
			t.Errorf("degraded %d", f[0].Degraded())
		}
		synctest.Wait()
		if log := sh.cache.log(); log != "lookup [1 99], store [99]" {
			t.Error(log)
		}
	})
}

// A shared cache that fails or hangs costs little time, and no answer.
func TestSharedFails(t *testing.T) {
	for name, fail := range map[string]func(ctx context.Context) error{
		"error": func(context.Context) error { return errors.New("broken") },
		"hangs": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"panic": func(context.Context) error { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sh := newShared(t, 50)
				sh.cache.before = func(ctx context.Context, _ string, _ int64) error { return fail(ctx) }
				cfg := sh.config()
				s := sh.instance(t, cfg)
				start := time.Now()
				for id := int64(1); id <= 50; id++ {
					if f := mustLoad(t, s, id)[0]; !hasName(f, fmt.Sprint("user ", id)) || f.Degraded() != 0 {
						t.Errorf("got %s, degraded %d", f.JSON(), f.Degraded())
					}
				}
				// Then the breaker is open.
				if d := time.Since(start); d > 6*users.DefaultSharedTimeout {
					t.Errorf("fifty loads took %v", d)
				}
				if n := counter(cfg.Stats, "cache_requests_total", "l2,error"); n != 50 {
					t.Errorf("%v errors", n)
				}
			})
		})
	}
}

// Rows that cannot be read do not matter for what is shared.
func TestSharedWithoutRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sh := newShared(t, 2)
		mustLoad(t, sh.instance(t, sh.config()), 1)
		synctest.Wait()
		sh.gate.onUsers = func(context.Context, []int64, func() ([]users.User, error)) ([]users.User, error) {
			return nil, errors.New("broken")
		}
		s := sh.instance(t, sh.config())
		if f := mustLoad(t, s, 1)[0]; !hasName(f, "user 1") || f.Degraded() != 0 {
			t.Errorf("got %s", f.JSON())
		}
		s.Flush()
		_, err := load(s, 1, 2)
		wantUnavailable(t, err)
		if !hasName(s.CachedUser(0, 1), "user 1") {
			t.Error("what was found is lost")
		}
	})
}

// Before the cache pushes removals, and when it does no longer, it is neither read nor
// filled, and L1 forgets fast.
func TestNoTrackingNoSharedCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sh := newShared(t, 3)
		s := newService(t, sh.config())
		lives := func() time.Duration {
			mustLoad(t, s, 1)
			start := time.Now()
			for s.CachedUser(0, 1) != nil {
				time.Sleep(10 * time.Millisecond)
			}
			return time.Since(start)
		}
		if d := lives(); d >= time.Second {
			t.Errorf("at the start entries live for %v", d)
		}
		if log := sh.cache.log(); log != "" {
			t.Error(log)
		}
		s.SetCoherent(true)
		synctest.Wait()
		if d := lives(); d < time.Minute-time.Second {
			t.Errorf("in good times entries live for %v", d)
		}
		if log := sh.cache.log(); log != "lookup [1], store [1]" {
			t.Error(log)
		}
		mustLoad(t, s, 1, 2)
		synctest.Wait()
		sh.cache.log()

		s.SetCoherent(false)
		if s.CachedUser(0, 1) != nil {
			t.Error("L1 was not emptied")
		}
		if d := lives(); d >= time.Second {
			t.Errorf("without tracking entries live for %v", d)
		}
		mustLoad(t, s, 99)
		time.Sleep(time.Second)
		if s.CachedUser(0, 99) != nil {
			t.Error("a missing user lived for a second")
		}
		rename(t, s, 2, "new") // others must hear of it all the same
		if log := sh.cache.log(); log != "void 2" {
			t.Error(log)
		}
		mustLoad(t, s, 3)
		s.SetCoherent(true)
		synctest.Wait()
		if s.CachedUser(0, 3) != nil {
			t.Error("L1 was not emptied at the return")
		}
		if f := mustLoad(t, s, 2)[0]; !hasName(f, "new") {
			t.Errorf("got %s", f.JSON())
		}
		if log := sh.cache.log(); !strings.HasPrefix(log, "lookup [2]") {
			t.Error(log)
		}
	})
}

// A load that began before tracking was lost fills neither cache.
func TestTrackingLostDuringLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sh := newShared(t, 1)
		release := make(chan struct{})
		holdFirst(sh.gate, release)
		s := sh.instance(t, sh.config())
		go mustLoad(t, s, 1)
		synctest.Wait()
		s.SetCoherent(false)
		s.SetCoherent(true)
		synctest.Wait()
		close(release)
		synctest.Wait()
		if log := sh.cache.log(); log != "lookup [1]" || s.CachedUser(0, 1) != nil {
			t.Error(log, s.CachedUser(0, 1))
		}
	})
}

// Commit, own cache, shared cache, own cache, other caches, read back.
func TestSharedWriteOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sh := newShared(t, 1)
		events := new(announced)
		cfg := sh.config()
		var s *users.Service
		cfg.Announce = func(context.Context, int64) error {
			events.add("announce")
			if s.CachedUser(0, 1) != nil {
				t.Error("announced while the own cache answers")
			}
			return nil
		}
		sh.gate.onWrite = func(_ context.Context, next func() error) error {
			events.add("write")
			return next()
		}
		s = sh.instance(t, cfg)
		mustLoad(t, s, 1)
		synctest.Wait()
		hooked := false
		sh.cache.before = func(_ context.Context, call string, _ int64) error {
			events.add(call)
			if call == "void 1" && !hooked {
				hooked = true
				// The committed user is not in L1 any more, but still in the shared cache:
				// who asks now gets it from there, and that must not stay.
				if f := s.CachedUser(0, 1); f != nil {
					t.Errorf("the shared cache is told while the own one answers %s", f.JSON())
				}
				if f := mustLoad(t, s, 1)[0]; !hasName(f, "user 1") {
					t.Errorf("got %s", f.JSON())
				}
			}
			return nil
		}
		rename(t, s, 1, "new")
		if !hasName(s.CachedUser(0, 1), "new") {
			t.Errorf("cached %v", s.CachedUser(0, 1))
		}
		synctest.Wait()
		if got := events.String(); got != "write, void 1, lookup [1], announce, lookup [1], store [1]" {
			t.Error(got)
		}
		if !sh.cache.has(1, "new") {
			t.Error("the shared cache has something else")
		}
	})
}

// A load of another instance that read before the write cannot fill the cache after it.
func TestLeaseEndsWithWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sh := newShared(t, 1)
		release := make(chan struct{})
		holdFirst(sh.gate, release)
		a, b := sh.instance(t, sh.config()), sh.instance(t, sh.config())
		go mustLoad(t, b, 1)
		synctest.Wait()
		rename(t, a, 1, "new")
		close(release)
		synctest.Wait()
		if !sh.cache.has(1, "new") {
			t.Error("the shared cache has the older user")
		}
	})
}

// A removal that cannot be sent is logged, and made up for; until then the shared cache
// is not used by whoever knows.
func TestVoidFails(t *testing.T) {
	for name, tt := range map[string]struct {
		log, logs bool // there is one, and it works
	}{
		"logged":    {logs: true, log: true},
		"log fails": {log: true},
		"no log":    {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sh := newShared(t, 2)
				cfg, other := sh.config(), sh.config()
				if !tt.log {
					cfg.Voids, other.Voids = nil, nil
				}
				var broken, logBroken atomic.Bool
				sh.cache.before = func(_ context.Context, call string, _ int64) error {
					if broken.Load() && strings.HasPrefix(call, "void") {
						return errors.New("broken")
					}
					return nil
				}
				sh.voids.fail = func(call string) error {
					if logBroken.Load() && call == "add" {
						return errors.New("no database")
					}
					return nil
				}
				a, b := sh.instance(t, cfg), sh.instance(t, other)
				sh.cache.voided = func(id int64) { go b.Forget(id) }
				mustLoad(t, a, 1)
				mustLoad(t, b, 1)
				synctest.Wait()
				broken.Store(true)
				logBroken.Store(!tt.logs)
				name := "new"
				_, err := a.Update(context.Background(), 1, users.Patch{Name: &name})
				if tt.logs && err != nil || !tt.logs && !errors.Is(err, users.ErrUnknownOutcome) {
					t.Errorf("got %v", err)
				}
				// The writer's own instance is never stale, though the shared cache is.
				if f := mustLoad(t, a, 1)[0]; !hasName(f, "new") {
					t.Errorf("the writer's instance answers %s", f.JSON())
				}
				mustLoad(t, a, 2)
				if !sh.cache.has(1, "user 1") {
					t.Error("the model did not fail")
				}
				time.Sleep(1100 * time.Millisecond)
				if tt.logs {
					// The other one has read the log.
					if f := mustLoad(t, b, 1)[0]; !hasName(f, "new") {
						t.Errorf("the other instance answers %s", f.JSON())
					}
				}
				broken.Store(false)
				logBroken.Store(false)
				time.Sleep(1100 * time.Millisecond)
				if sh.cache.has(1, "user 1") || sh.voids.len() != 0 {
					t.Error("nobody has made up for the removal")
				}
				for i, s := range []*users.Service{a, b} {
					if f := mustLoad(t, s, 1)[0]; !hasName(f, "new") {
						t.Errorf("in the end instance %d answers %s", i, f.JSON())
					}
				}
				synctest.Wait()
				sh.cache.log()
				a.Forget(2)
				mustLoad(t, a, 2)
				if log := sh.cache.log(); !strings.HasPrefix(log, "lookup [2]") {
					t.Errorf("the shared cache is not used again: %q", log)
				}
			})
		})
	}
}

// What was logged while tracking was lost is made up for before the cache is read.
func TestLogIsDrainedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sh := newShared(t, 1)
		var logBroken atomic.Bool
		sh.voids.fail = func(string) error {
			if logBroken.Load() {
				return errors.New("no database")
			}
			return nil
		}
		a := sh.instance(t, sh.config())
		mustLoad(t, a, 1)
		synctest.Wait()
		a.SetCoherent(false)
		// Another instance, which cannot reach the shared cache, writes.
		name := "new"
		if err := sh.gate.Rows.Update(context.Background(), 1, users.Patch{Name: &name}); err != nil {
			t.Fatal(err)
		}
		for range 300 {
			if err := sh.voids.AddVoid(context.Background(), 1); err != nil {
				t.Fatal(err)
			}
		}
		logBroken.Store(true)
		sh.cache.log()
		a.SetCoherent(true)
		time.Sleep(5 * time.Second)
		_, _ = load(a, 1) // the database is said to be down by now
		if log := sh.cache.log(); log != "" {
			t.Errorf("the cache was used before the log could be read: %s", log)
		}
		logBroken.Store(false)
		time.Sleep(2 * time.Second)
		if f := mustLoad(t, a, 1)[0]; !hasName(f, "new") || sh.voids.len() != 0 {
			t.Errorf("got %s, %d removals in the log", f.JSON(), sh.voids.len())
		}
		if log := sh.cache.log(); !strings.HasPrefix(log, "void 1, void 1, lookup [1]") { // once for each part of the log
			t.Error(log)
		}
		// A database that fails later does not end the use of the cache.
		logBroken.Store(true)
		time.Sleep(10 * time.Second)
		a.Forget(1)
		_, _ = load(a, 1)
		if log := sh.cache.log(); !strings.Contains(log, "lookup [1]") {
			t.Error(log)
		}
	})
}

// Without a shared cache SetCoherent still bounds how old an answer may be.
func TestCoherentWithoutShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 1)
		s := newService(t, users.Config{Rows: db, Stats: stats.NewRegistry(1)})
		mustLoad(t, s, 1)
		s.SetCoherent(true) // nothing changes
		if s.CachedUser(0, 1) == nil {
			t.Error("emptied")
		}
		s.SetCoherent(false)
		if s.CachedUser(0, 1) != nil {
			t.Error("not emptied")
		}
		mustLoad(t, s, 1)
		time.Sleep(time.Second)
		if s.CachedUser(0, 1) != nil {
			t.Error("lives for a second")
		}
	})
}

func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 300)
		g := newGate(db)
		s := users.NewService(g.config())
		for id := int64(1); id <= 200; id++ {
			mustLoad(t, s, id)
		}
		release := make(chan struct{})
		holdFirst(g, release)
		waited := make(chan []*users.Fragment)
		go func() { waited <- mustLoad(t, s, 250) }()
		synctest.Wait()
		s.Flush()
		for id := int64(1); id <= 200; id++ {
			if s.CachedUser(0, id) != nil {
				t.Errorf("id %d is cached", id)
			}
		}
		close(release)
		if f := <-waited; !hasName(f[0], "user 250") {
			t.Errorf("who waited got %s", f[0].JSON())
		}
		synctest.Wait()
		if s.CachedUser(0, 250) != nil {
			t.Error("a load from before has landed")
		}
		mustLoad(t, s, 1)
		s.Close()
		s.Flush()
		if s.CachedUser(0, 1) != nil {
			t.Error("cached after Close and Flush")
		}
	})
}
