package users_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pinion/users"
)

// stalled is a Service whose rows are about to fail, in the way that fail says.
func stalled(t *testing.T, n int) (s *users.Service, cfg users.Config, g *gate, fail *error) {
	db := openDB(t)
	sample(t, db, n)
	g = newGate(db)
	fail = new(error)
	g.onUsers = func(_ context.Context, _ []int64, next func() ([]users.User, error)) ([]users.User, error) {
		if *fail != nil {
			return nil, *fail
		}
		return next()
	}
	cfg = g.config()
	return newService(t, cfg), cfg, g, fail
}

// expire waits until id is fresh no longer.
func expire(s *users.Service, id int64) {
	for s.CachedUser(0, id) != nil {
		time.Sleep(time.Second)
	}
}

// Without rows, what was known not long ago is answered, and said to be old.
func TestStaleIfError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cfg, _, fail := stalled(t, 3)
		fresh := mustLoad(t, s, 1, 2, 99)
		expire(s, 1)
		expire(s, 2)
		*fail = errors.New("broken")
		for range 20 { // with and without the breaker
			f := mustLoad(t, s, 1, 2)
			for i := range f {
				if f[i].Degraded() != users.DegradedStale || string(f[i].JSON()) != string(fresh[i].JSON()) {
					t.Errorf("got %s, degraded %d", f[i].JSON(), f[i].Degraded())
				}
			}
		}
		if s.CachedUser(0, 1) != nil {
			t.Error("an old answer is cached as if it were fresh")
		}
		if n := counter(cfg.Stats, "cache_requests_total", "l1,stale"); n != 40 {
			t.Errorf("%v old answers counted, want 40", n)
		}
		for _, ids := range [][]int64{{3}, {1, 3}, {99}} { // never known, or known to be missing
			_, err := load(s, ids...)
			wantUnavailable(t, err)
		}
		// Back to normal.
		*fail = nil
		time.Sleep(time.Second)
		if f := mustLoad(t, s, 1)[0]; f.Degraded() != 0 || s.CachedUser(0, 1) == nil {
			t.Errorf("degraded %d", f.Degraded())
		}
	})
}

func TestStaleEnds(t *testing.T) {
	broken := errors.New("broken")
	t.Run("in time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, _, _, fail := stalled(t, 1)
			mustLoad(t, s, 1)
			start := time.Now()
			expire(s, 1)
			*fail = broken
			for {
				if _, err := load(s, 1); err != nil {
					break
				}
				time.Sleep(time.Second)
			}
			if d := time.Since(start); d < 11*time.Minute-2*time.Second || d > 11*time.Minute+15*time.Second {
				t.Errorf("known for %v, want 60 to 72 s and ten minutes", d)
			}
		})
	})
	for name, end := range map[string]func(s *users.Service, g *gate){
		"by Forget": func(s *users.Service, _ *gate) { s.Forget(1) },
		"by Flush":  func(s *users.Service, _ *gate) { s.Flush() },
		"by a write that may have been stored": func(s *users.Service, g *gate) {
			g.onWrite = func(context.Context, func() error) error { return broken }
			_ = s.Delete(context.Background(), 1)
		},
		"by lost tracking": func(s *users.Service, _ *gate) { s.SetCoherent(false) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _, g, fail := stalled(t, 1)
				mustLoad(t, s, 1)
				expire(s, 1)
				*fail = broken
				mustLoad(t, s, 1)
				end(s, g)
				_, err := load(s, 1)
				wantUnavailable(t, err)
			})
		})
	}
	// What was refused was not stored for sure.
	t.Run("not by a write that was refused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, cfg, _, fail := stalled(t, 1)
			mustLoad(t, s, 1)
			expire(s, 1)
			*fail = broken
			for breaker(&cfg, "sql") != 2 {
				mustLoad(t, s, 1)
			}
			if err := s.Delete(context.Background(), 1); !errors.Is(err, users.ErrBreakerOpen) {
				t.Error(err)
			}
			mustLoad(t, s, 1)
		})
	})
	t.Run("not kept", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, cfg, _, fail := stalled(t, 1)
			cfg.StaleTTL = -1
			s := newService(t, cfg)
			mustLoad(t, s, 1)
			expire(s, 1)
			*fail = broken
			_, err := load(s, 1)
			wantUnavailable(t, err)
		})
	})
}

// A caller with a deadline gets the old answer before it has passed.
func TestStaleInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, g, _ := stalled(t, 3)
		mustLoad(t, s, 1, 2)
		expire(s, 1)
		expire(s, 2)
		g.onUsers = func(ctx context.Context, _ []int64, _ func() ([]users.User, error)) ([]users.User, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, users.ErrCallerDeadline)
		defer cancel()
		start := time.Now()
		f, err := loadIn(ctx, s, 1, 2)
		if err != nil || time.Since(start) != 900*time.Millisecond {
			t.Fatalf("got %v after %v", err, time.Since(start))
		}
		if f[0].Degraded() != users.DegradedStale || !hasName(f[1], "user 2") {
			t.Errorf("got %s, degraded %d", f[0].JSON(), f[0].Degraded())
		}
		// Not if there is something that cannot be answered, and not if a write came.
		for _, ids := range [][]int64{{1, 3}, {1}} {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer time.AfterFunc(500*time.Millisecond, func() { s.Forget(1) }).Stop()
			_, err := loadIn(ctx, s, ids...)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v: got %v", ids, err)
			}
			cancel()
		}
	})
}

// An old answer may lack something as well.
func TestStaleAndDegraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, g, fail := stalled(t, 1)
		*fail = nil
		g.onMembers = func(context.Context, func() (map[int64]users.Member, error)) (map[int64]users.Member, error) {
			return nil, errors.New("broken")
		}
		mustLoad(t, s, 1)
		expire(s, 1)
		*fail = errors.New("broken")
		f := mustLoad(t, s, 1)[0]
		if got := string(f.Degraded().AppendJSON(nil)); got != `["member","stale"]` || !strings.HasSuffix(string(f.JSON()), `"member":null}`) {
			t.Errorf("got %s, degraded %s", f.JSON(), got)
		}
	})
}
