package users_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pinion/users"
)

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
		const n = 20000
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
		for id := int64(1); id <= n; id += 200 {
			ids := make([]int64, 200)
			for i := range ids {
				ids[i] = id + int64(i)
			}
			mustLoad(t, s, ids...)
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("loads waited %v", d)
		}
		close(release)
		synctest.Wait()
		stored, dropped := counter(cfg.Stats, "cache_fills_total", "l2,stored"), counter(cfg.Stats, "cache_fills_total", "l2,dropped")
		if stored+dropped != n || stored < 16000 || dropped == 0 {
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
