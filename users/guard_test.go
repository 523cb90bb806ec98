package users_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pinion/users"
)

// breaker is the state of a source's breaker, and how often the source was asked.
func breaker(cfg *users.Config, source string) float64 {
	return counter(cfg.Stats, "source_breaker_state", source)
}

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 50)
		g := newGate(db)
		boom := errors.New("boom")
		var fails error
		g.onUsers = func(_ context.Context, _ []int64, next func() ([]users.User, error)) ([]users.User, error) {
			if fails != nil {
				return nil, fails
			}
			return next()
		}
		cfg := g.config()
		s := newService(t, cfg)
		id := int64(0)
		failing := func() error {
			id++
			_, err := load(s, id)
			return err
		}
		// Misses are no failures, and neither is a single one.
		for range 100 {
			if _, err := s.Address(context.Background(), 999); !errors.Is(err, users.ErrNotFound) {
				t.Fatal(err)
			}
		}
		fails = boom
		opened := 0
		for ; opened < 20 && breaker(&cfg, "sql") == 0; opened++ {
			err := failing()
			wantUnavailable(t, err)
			if !errors.Is(err, boom) || errors.Is(err, users.ErrBreakerOpen) {
				t.Errorf("got %v", err)
			}
		}
		if opened < 3 || opened > 5 { // retries count too
			t.Errorf("open after %d failing loads", opened)
		}
		before := g.called("users")
		for range 10 {
			err := failing()
			wantUnavailable(t, err)
			if !errors.Is(err, users.ErrBreakerOpen) {
				t.Errorf("got %v", err)
			}
		}
		name := "new"
		_, err := s.Update(context.Background(), 1, users.Patch{Name: &name})
		if !errors.Is(err, users.ErrBreakerOpen) || errors.Is(err, users.ErrUnknownOutcome) {
			t.Errorf("a write got %v", err)
		}
		if n := g.called("users"); n != before {
			t.Errorf("asked %d times while open", n-before)
		}
		if n := counter(cfg.Stats, "source_requests_total", "sql,refused"); n != 11 {
			t.Errorf("%v calls refused, want 11", n)
		}
		// One call finds out that it still fails, and another one that it does not.
		time.Sleep(501 * time.Millisecond)
		if state := breaker(&cfg, "sql"); state != 1 {
			t.Errorf("state %v, want half-open", state)
		}
		if err := failing(); !errors.Is(err, boom) || breaker(&cfg, "sql") != 2 {
			t.Errorf("got %v, state %v", err, breaker(&cfg, "sql"))
		}
		time.Sleep(501 * time.Millisecond)
		fails = nil
		if err := failing(); err != nil || breaker(&cfg, "sql") != 0 {
			t.Errorf("got %v, state %v", err, breaker(&cfg, "sql"))
		}
		for range 10 {
			if err := failing(); err != nil {
				t.Error(err)
			}
		}
		if breaker(&cfg, "attributes") != 0 || breaker(&cfg, "members") != 0 {
			t.Error("breakers of other sources have moved")
		}
	})
}

// A source that hangs is found back within two seconds of its return, though the call
// that tries it may hang too.
func TestBreakerProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 1)
		g := newGate(db)
		var hangs atomic.Bool
		hangs.Store(true)
		g.onUsers = func(ctx context.Context, _ []int64, next func() ([]users.User, error)) ([]users.User, error) {
			if hangs.Load() {
				<-ctx.Done() // also the call that is out when the source returns
				return nil, ctx.Err()
			}
			return next()
		}
		cfg := g.config()
		s := newService(t, cfg)
		start := time.Now()
		for breaker(&cfg, "sql") != 2 {
			_, err := load(s, 1)
			wantUnavailable(t, err)
		}
		if d := time.Since(start); d != 5*users.DefaultSQLTimeout {
			t.Errorf("open after %v", d)
		}
		// Somebody always asks, so a call that tries the source is out most of the time.
		var back atomic.Bool
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
				}
				if _, err := load(s, 1); err == nil {
					back.Store(true)
					s.Forget(1)
				}
			}
		})
		for offset := range 10 { // wherever in its cycle the source returns
			hangs.Store(true)
			time.Sleep(20*time.Second + time.Duration(offset)*151*time.Millisecond)
			if breaker(&cfg, "sql") == 0 {
				t.Error("closed while the source hangs")
			}
			back.Store(false)
			hangs.Store(false)
			start := time.Now()
			for !back.Load() {
				time.Sleep(10 * time.Millisecond)
			}
			if d := time.Since(start); d > 2*time.Second {
				t.Errorf("back after %v", d)
			}
		}
		close(stop)
		wg.Wait()
	})
}

// Callers that leave say nothing about the source.
func TestBreakerAndCallers(t *testing.T) {
	for name, begin := range map[string]func() (context.Context, context.CancelFunc){
		"leave": func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Millisecond, cancel)
			return ctx, cancel
		},
		"have no time": func() (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(context.Background(), time.Millisecond, users.ErrCallerDeadline)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := openDB(t)
				sample(t, db, 1)
				g := newGate(db)
				g.onUsers = func(ctx context.Context, _ []int64, _ func() ([]users.User, error)) ([]users.User, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				g.onWrite = func(ctx context.Context, _ func() error) error {
					<-ctx.Done()
					return ctx.Err()
				}
				cfg := g.config()
				s := newService(t, cfg)
				for range 50 {
					ctx, cancel := begin()
					if _, err := loadIn(ctx, s, 1); err == nil || errors.Is(err, users.ErrUnavailable) {
						t.Errorf("Load: %v", err)
					}
					cancel()
					ctx, cancel = begin()
					if err := s.Delete(ctx, 1); err == nil || errors.Is(err, users.ErrUnavailable) {
						t.Errorf("Delete: %v", err)
					}
					cancel()
				}
				synctest.Wait()
				if state := breaker(&cfg, "sql"); state != 0 {
					t.Errorf("state %v, want closed", state)
				}
				if n := counter(cfg.Stats, "source_requests_total", "sql,canceled"); n != 100 {
					t.Errorf("%v calls canceled, want 100", n)
				}
			})
		})
	}
}

// As many calls as allowed are in flight; who waits on top of that leaves in time.
func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 1)
		g := newGate(db)
		release := make(chan struct{})
		var mu sync.Mutex
		out, most := 0, 0
		g.onWrite = func(_ context.Context, next func() error) error {
			mu.Lock()
			out++
			most = max(most, out)
			mu.Unlock()
			hold(release)
			mu.Lock()
			out--
			mu.Unlock()
			return next()
		}
		cfg := g.config()
		cfg.Limits.SQL = users.SourceLimits{InFlight: 2, Timeout: time.Hour}
		s := newService(t, cfg)
		change := func(ctx context.Context) error {
			name := "new"
			_, err := s.Update(ctx, 1, users.Patch{Name: &name})
			return err
		}
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if err := change(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		for name, tt := range map[string]struct {
			cause error
			want  error
		}{
			"the server's deadline": {nil, users.ErrOverloaded},
			"the caller's deadline": {users.ErrCallerDeadline, context.DeadlineExceeded},
		} {
			ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, tt.cause)
			start := time.Now()
			err := change(ctx)
			if !errors.Is(err, tt.want) || time.Since(start) != time.Second {
				t.Errorf("%s: got %v after %v", name, err, time.Since(start))
			}
			if overloaded := errors.Is(err, users.ErrUnavailable); overloaded != (tt.cause == nil) {
				t.Errorf("%s: got %v", name, err)
			}
			cancel()
		}
		close(release)
		wg.Wait()
		if most != 2 {
			t.Errorf("%d calls in flight, want 2", most)
		}
		if state := breaker(&cfg, "sql"); state != 0 {
			t.Errorf("state %v, want closed: the source was never asked", state)
		}
	})
}

// Reads that fail at once are tried again, once, and not for more than a tenth of them.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 100)
		g := newGate(db)
		fail := map[int]bool{1: true}
		g.onUsers = func(_ context.Context, _ []int64, next func() ([]users.User, error)) ([]users.User, error) {
			if fail[g.called("users")] {
				return nil, errors.New("connection reset")
			}
			return next()
		}
		s := newService(t, g.config())
		if f := mustLoad(t, s, 1)[0]; !hasName(f, "user 1") || g.called("users") != 2 {
			t.Errorf("got %s after %d calls", f.JSON(), g.called("users"))
		}
		fail[3] = true // the budget is used up
		_, err := load(s, 2)
		wantUnavailable(t, err)
		for id := int64(10); id < 20; id++ {
			mustLoad(t, s, id)
		}
		fail[g.called("users")+1] = true
		mustLoad(t, s, 3)

		// Not after a timeout, not when there is no time, and never a write.
		for id := int64(20); id < 60; id++ {
			mustLoad(t, s, id)
		}
		g.onUsers = func(ctx context.Context, _ []int64, _ func() ([]users.User, error)) ([]users.User, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		before := g.called("users")
		_, err = load(s, 70)
		wantUnavailable(t, err)
		if n := g.called("users") - before; n != 1 {
			t.Errorf("asked %d times after a timeout", n)
		}
		writes := 0
		g.onWrite = func(context.Context, func() error) error {
			writes++
			return errors.New("connection reset")
		}
		wantUnavailable(t, s.Delete(context.Background(), 1))
		if writes != 1 {
			t.Errorf("%d attempts at a write", writes)
		}
	})
}

// What ends a call that may have been stored must say so, whatever else ended.
func TestUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 1)
		g := newGate(db)
		for _, cause := range []error{context.Canceled, context.DeadlineExceeded, errors.New("connection lost")} {
			s := newService(t, g.config())
			ctx, cancel := context.WithCancel(context.Background())
			g.onWrite = func(context.Context, func() error) error {
				if errors.Is(cause, context.Canceled) {
					cancel()
				}
				return fmt.Errorf("%w: %w", users.ErrUnknownOutcome, cause)
			}
			name := "new"
			_, updateErr := s.Update(ctx, 1, users.Patch{Name: &name})
			_, id, createErr := s.Create(ctx, users.NewUser{Name: name, Email: "x@example.com"})
			for _, err := range []error{updateErr, createErr, s.Delete(ctx, 1)} {
				wantUnavailable(t, err)
				if !errors.Is(err, users.ErrUnknownOutcome) || !strings.Contains(err.Error(), cause.Error()) {
					t.Errorf("%v: got %v", cause, err)
				}
			}
			if id != 0 {
				t.Errorf("id %d of a user that may not be", id)
			}
			cancel()
		}
	})
}

// What an answer can do without costs at most a part of the time there is.
func TestOptionalPartsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 4)
		g := newGate(db)
		delay := time.Hour
		g.onMembers = func(ctx context.Context, next func() (map[int64]users.Member, error)) (map[int64]users.Member, error) {
			select {
			case <-time.After(delay):
				return next()
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		cfg := g.config()
		s := newService(t, cfg)
		ask := func(timeout time.Duration, id int64) (*users.Fragment, time.Duration) {
			ctx, cancel := context.WithTimeoutCause(context.Background(), timeout, users.ErrCallerDeadline)
			defer cancel()
			start := time.Now()
			f, err := loadIn(ctx, s, id)
			if err != nil {
				t.Error(err)
			}
			return f[0], time.Since(start)
		}
		if f, d := ask(500*time.Millisecond, 1); d != 400*time.Millisecond || f.Degraded() != users.DegradedMember {
			t.Errorf("degraded %d after %v", f.Degraded(), d)
		}
		// The source's own limit comes first.
		if f, d := ask(time.Minute, 2); d != users.DefaultPartTimeout || f.Degraded() != users.DegradedMember {
			t.Errorf("degraded %d after %v", f.Degraded(), d)
		}
		// The first call went on without its caller: how it ended counts.
		if n := counter(cfg.Stats, "source_requests_total", "members,error"); n != 2 {
			t.Errorf("%v calls failed, want 2", n)
		}

		// Who has hardly any time does not decide what others get.
		delay = 100 * time.Millisecond
		done := make(chan *users.Fragment)
		go func() {
			f, _ := ask(50*time.Millisecond, 3)
			done <- f
		}()
		synctest.Wait()
		if f := mustLoad(t, s, 3)[0]; f.Degraded() != 0 {
			t.Errorf("a patient caller got degraded %d", f.Degraded())
		}
		if f := <-done; f.Degraded() != users.DegradedMember {
			t.Errorf("a hasty caller got degraded %d", f.Degraded())
		}
		if f, _ := ask(50*time.Millisecond, 4); f.Degraded() == 0 || s.CachedUser(0, 4) != nil {
			t.Errorf("what a hasty caller got is cached: %v", s.CachedUser(0, 4))
		}
	})
}
