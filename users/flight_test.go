package users_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pinion/users"
)

// Concurrent misses for one id are one query.
func TestSharedMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 1)
		g := newGate(db)
		release := make(chan struct{})
		g.onUsers = func(_ context.Context, _ []int64, next func() ([]users.User, error)) ([]users.User, error) {
			hold(release)
			return next()
		}
		s := newService(t, g.config())
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if f := mustLoad(t, s, 1); !hasName(f[0], "user 1") {
					t.Errorf("got %s", f[0].JSON())
				}
			})
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		if got := g.log(); got != "[1]" {
			t.Errorf("queries %s, want [1]", got)
		}
		if g.called("attributes") != 1 || g.called("members") != 1 {
			t.Errorf("calls %v, want one each", g.calls)
		}
		if f := mustLoad(t, s, 1); !hasName(f[0], "user 1") || g.log() != "[1]" {
			t.Errorf("cached: %s after %s", f[0].JSON(), g.log())
		}
	})
}

// What a thousand requests for twenty users of a thousand cost, all cold, while a query
// takes longer than it takes to ask.
func TestThousandColdRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		if _, err := db.Fill(context.Background(), 1000, nil); err != nil {
			t.Fatal(err)
		}
		g := newGate(db)
		g.onUsers = func(_ context.Context, _ []int64, next func() ([]users.User, error)) ([]users.User, error) {
			time.Sleep(time.Millisecond)
			return next()
		}
		g.onAttributes = func(_ context.Context, next func() (map[int64][]users.Attribute, error)) (map[int64][]users.Attribute, error) {
			time.Sleep(time.Millisecond)
			return next()
		}
		g.onMembers = func(_ context.Context, next func() (map[int64]users.Member, error)) (map[int64]users.Member, error) {
			time.Sleep(time.Millisecond)
			return next()
		}
		s := newService(t, g.config())
		var wg sync.WaitGroup
		for i := range int64(1000) {
			wg.Go(func() {
				ids := make([]int64, 20)
				for k := range ids {
					ids[k] = 1 + (i*37+int64(k)*53)%1000
				}
				for k, f := range mustLoad(t, s, ids...) {
					if !strings.HasPrefix(string(f.JSON()), fmt.Sprintf(`{"id":%d,`, ids[k])) {
						t.Errorf("id %d: %s", ids[k], f.JSON())
					}
				}
			})
		}
		wg.Wait()
		for _, source := range []string{"users", "attributes", "members"} {
			if n := g.called(source); n > 10 {
				t.Errorf("%s was asked %d times, want a handful", source, n)
			}
		}
	})
}

// A batch asks only for what nobody else is asking for, and what comes while a query is
// out is one more.
func TestBatchJoinsOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 6)
		g := newGate(db)
		release := make(chan struct{})
		g.onUsers = func(_ context.Context, _ []int64, next func() ([]users.User, error)) ([]users.User, error) {
			hold(release)
			return next()
		}
		s := newService(t, g.config())
		var wg sync.WaitGroup
		for _, ids := range [][]int64{{1, 2, 99}, {2, 3, 99}, {4, 3, 1, 99}, {4, 2}} {
			wg.Go(func() {
				fragments := mustLoad(t, s, ids...)
				for i, id := range ids {
					if missing := id == 99; fragments[i].Missing() != missing || !missing && !hasName(fragments[i], fmt.Sprint("user ", id)) {
						t.Errorf("id %d of %v: %s", id, ids, fragments[i].JSON())
					}
				}
			})
			synctest.Wait()
		}
		close(release)
		wg.Wait()
		if got := g.log(); got != "[1 2 99] [3 4]" {
			t.Errorf("queries %s, want [1 2 99] [3 4]", got)
		}
	})
}

type contextKey struct{}

// The first caller leaves; the others are served. What the source sees of the callers'
// contexts is nothing.
func TestFirstWaiterLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 1)
		g := newGate(db)
		release := make(chan struct{})
		g.onUsers = func(ctx context.Context, _ []int64, next func() ([]users.User, error)) ([]users.User, error) {
			hold(release)
			if ctx.Err() != nil || ctx.Value(contextKey{}) != nil {
				t.Errorf("the source sees a caller's context: %v, %v", ctx.Err(), ctx.Value(contextKey{}))
			}
			return next()
		}
		s := newService(t, g.config())
		first, cancel := context.WithTimeout(context.WithValue(context.Background(), contextKey{}, 1), time.Second)
		defer cancel()
		firstErr, second := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := loadIn(first, s, 1)
			firstErr <- err
		}()
		synctest.Wait()
		go func() {
			f, err := load(s, 1)
			if err == nil && !hasName(f[0], "user 1") {
				err = errors.New(string(f[0].JSON()))
			}
			second <- err
		}()
		if err := <-firstErr; !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, users.ErrUnavailable) {
			t.Errorf("first caller got %v, want its own deadline", err)
		}
		synctest.Wait()
		close(release)
		if err := <-second; err != nil {
			t.Errorf("second caller got %v", err)
		}
	})
}

// When all have left, the query is cancelled, its result is dropped, and whoever comes
// then asks anew, even while the old query hangs.
func TestLastWaiterLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 1)
		g := newGate(db)
		release := make(chan struct{})
		g.onUsers = func(ctx context.Context, _ []int64, next func() ([]users.User, error)) ([]users.User, error) {
			if strings.Count(g.log(), "[") > 1 {
				return next()
			}
			<-ctx.Done()
			hold(release) // deaf for a while
			return next()
		}
		cfg := g.config()
		s := newService(t, cfg)
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := loadIn(ctx, s, 1); !errors.Is(err, context.Canceled) || errors.Is(err, users.ErrUnavailable) {
					t.Errorf("got %v, want context.Canceled", err)
				}
			})
		}
		synctest.Wait()
		cancel()
		wg.Wait()

		if f := mustLoad(t, s, 1); !hasName(f[0], "user 1") {
			t.Errorf("who came after them got %s", f[0].JSON())
		}
		rename(t, s, 1, "new")
		if got := g.log(); got != "[1] [1] [1]" {
			t.Errorf("queries %s, want [1] [1] [1]", got)
		}
		close(release)
		synctest.Wait()
		if f := s.CachedUser(0, 1); !hasName(f, "new") {
			t.Errorf("the dropped query came back: %v", f)
		}
	})
}

// A source that only failed because everybody left must not mark the user as degraded.
func TestAbandonedIsNotDegraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 1)
		g := newGate(db)
		g.onAttributes = func(ctx context.Context, _ func() (map[int64][]users.Attribute, error)) (map[int64][]users.Attribute, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		cfg := g.config()
		s := newService(t, cfg)
		ctx, cancel := context.WithCancel(context.Background())
		defer time.AfterFunc(time.Millisecond, cancel).Stop()
		if _, err := loadIn(ctx, s, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if f := s.CachedUser(0, 1); f != nil {
			t.Errorf("cached %s, degraded %d", f.JSON(), f.Degraded())
		}
		if n := counter(cfg.Stats, "source_requests_total", "attributes,canceled"); n != 1 {
			t.Errorf("%v calls of attributes canceled, want 1", n)
		}
		if n := counter(cfg.Stats, "source_requests_total", "attributes,error"); n > 0 {
			t.Errorf("%v calls of attributes failed, want 0", n)
		}
	})
}

func TestLoadTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 1)
		g := newGate(db)
		hang := func(ctx context.Context, _ []int64, _ func() ([]users.User, error)) ([]users.User, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		g.onUsers = hang
		cfg := g.config()
		cfg.Limits.SQL.Timeout = time.Minute
		s := newService(t, cfg)
		start := time.Now()
		_, err := load(s, 1)
		wantUnavailable(t, err)
		if d := time.Since(start); d != users.DefaultLoadTimeout {
			t.Errorf("failed after %v, want %v", d, users.DefaultLoadTimeout)
		}
		synctest.Wait()
		if n := counter(cfg.Stats, "source_requests_total", "sql,error"); n != 1 {
			t.Errorf("%v calls of sql failed, want 1", n)
		}
		// A part that hangs is left out.
		g.onUsers = nil
		g.onMembers = func(ctx context.Context, _ func() (map[int64]users.Member, error)) (map[int64]users.Member, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		f := mustLoad(t, s, 1)[0]
		if f.Degraded() != users.DegradedMember || !strings.HasSuffix(string(f.JSON()), `"attributes":{"k":"v"},"member":null}`) {
			t.Errorf("got %s, degraded %d", f.JSON(), f.Degraded())
		}
	})
}

// Whatever a source does, nobody waits for ever and the process lives.
func TestSourceBreaks(t *testing.T) {
	boom := errors.New("boom")
	for name, fail := range map[string]func() error{
		"error":  func() error { return boom },
		"panic":  func() error { panic("boom") },
		"nil":    func() error { var g *gate; return errors.New(g.log()) },
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := openDB(t)
				sample(t, db, 1)
				g := newGate(db)
				s := newService(t, g.config())

				g.onUsers = func(context.Context, []int64, func() ([]users.User, error)) ([]users.User, error) { return nil, fail() }
				_, err := load(s, 1)
				wantUnavailable(t, err)
				if name == "error" && !errors.Is(err, boom) {
					t.Errorf("%v does not wrap the cause", err)
				}
				if s.CachedUser(0, 1) != nil {
					t.Error("a failure was cached")
				}

				synctest.Wait() // for the calls that nobody needs any more
				g.onUsers = nil
				g.onAttributes = func(context.Context, func() (map[int64][]users.Attribute, error)) (map[int64][]users.Attribute, error) {
					return nil, fail()
				}
				g.onMembers = func(context.Context, func() (map[int64]users.Member, error)) (map[int64]users.Member, error) {
					return nil, fail()
				}
				f := mustLoad(t, s, 1)[0]
				if f.Degraded() != users.DegradedAttributes|users.DegradedMember ||
					!strings.HasSuffix(string(f.JSON()), `"attributes":null,"member":null}`) {
					t.Errorf("got %s, degraded %d", f.JSON(), f.Degraded())
				}

				if name == "goexit" {
					return // ends the caller, which is this test
				}
				synctest.Wait()
				g.onAttributes, g.onMembers = nil, nil
				g.onWrite = func(context.Context, func() error) error { return fail() }
				_, _, err = s.Create(context.Background(), users.NewUser{Name: "x", Email: "x@example.com"})
				wantUnavailable(t, err)
				wantUnavailable(t, s.Delete(context.Background(), 1))
				// The outcome of a failed write is not known: the cache forgets.
				if s.CachedUser(0, 1) != nil {
					t.Error("still cached after a failed write")
				}
			})
		})
	}
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 2)
		g := newGate(db)
		s := users.NewService(g.config())
		mustLoad(t, s, 2)
		g.onUsers = func(ctx context.Context, _ []int64, _ func() ([]users.User, error)) ([]users.User, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		done := make(chan error)
		go func() {
			_, err := load(s, 1)
			done <- err
		}()
		synctest.Wait()
		go s.Close()
		wantUnavailable(t, <-done)
		s.Close()
		_, err := load(s, 1)
		wantUnavailable(t, err)
		if f := mustLoad(t, s, 2); !hasName(f[0], "user 2") {
			t.Error("what is cached is gone")
		}
	})
}
