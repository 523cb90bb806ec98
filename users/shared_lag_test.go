package users_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pinion/users"
)

// Two processes of one host, and a removal that the shared cache did not take: the other
// process must not read the older user there, either.
func TestSharedLagsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sh := newShared(t, 3)
		var other *users.Service
		cfg := sh.config()
		cfg.Announce = func(_ context.Context, id int64) error {
			other.Forget(id)
			return nil
		}
		other = sh.instance(t, sh.config())
		writer := sh.instance(t, cfg)
		mustLoad(t, writer, 1) // and so it is in the shared cache
		synctest.Wait()
		mustLoad(t, other, 1)

		var full atomic.Bool
		full.Store(true)
		sh.cache.before = func(_ context.Context, call string, _ int64) error {
			if call == "void 1" && full.Load() {
				return errors.New("out of memory")
			}
			return nil
		}
		rename(t, writer, 1, "new")
		if f := mustLoad(t, other, 1); !hasName(f[0], "new") {
			t.Errorf("after the write: %s", f[0].JSON())
		}
		full.Store(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := sh.voids.len(); n != 0 {
			t.Errorf("%d removals are owed", n)
		}
	})
}

// Without the news of removals nothing may be older than a second, from when it was asked
// for, however long the sources took.
func TestBriefFromTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sh := newShared(t, 3)
		var slow atomic.Bool
		slow.Store(true)
		sh.gate.onMembers = func(_ context.Context, next func() (map[int64]users.Member, error)) (map[int64]users.Member, error) {
			if slow.Load() {
				time.Sleep(800 * time.Millisecond)
			}
			return next()
		}
		s := newService(t, sh.config()) // not coherent
		mustLoad(t, s, 1)
		slow.Store(false)
		rename(t, sh.instance(t, sh.config()), 1, "new")
		if f := mustLoad(t, s, 1); !hasName(f[0], "user 1") {
			t.Errorf("it was not cached at all: %s", f[0].JSON())
		}
		time.Sleep(250 * time.Millisecond) // 1.05 s after the question
		if f := mustLoad(t, s, 1); !hasName(f[0], "new") {
			t.Errorf("a second after the question: %s", f[0].JSON())
		}
	})
}
