package users_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pinion/internal/stats"
	"pinion/users"
)

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
