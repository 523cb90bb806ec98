package users_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pinion/users"
)

// A load that began before Forget answers those who waited, and nobody else.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 3)
		g := newGate(db)
		release := make(chan struct{})
		s := newService(t, g.config())
		mustLoad(t, s, 1, 3)
		holdFirst(g, release)
		waited := make(chan []*users.Fragment)
		go func() { waited <- mustLoad(t, s, 2) }()
		synctest.Wait()

		name := "new"
		for id := int64(1); id <= 2; id++ {
			if err := db.Update(context.Background(), id, users.Patch{Name: &name}); err != nil {
				t.Fatal(err)
			}
			s.Forget(id)
			if f := s.CachedUser(0, id); f != nil {
				t.Errorf("id %d is cached after Forget: %s", id, f.JSON())
			}
		}
		s.Forget(99) // unknown: nothing happens
		if f := mustLoad(t, s, 1, 2); !hasName(f[0], "new") || !hasName(f[1], "new") {
			t.Errorf("after Forget: %s, %s", f[0].JSON(), f[1].JSON())
		}
		close(release)
		if f := <-waited; !hasName(f[0], "user 2") {
			t.Errorf("who waited before Forget got %s", f[0].JSON())
		}
		synctest.Wait()
		if f := s.CachedUser(0, 2); !hasName(f, "new") {
			t.Errorf("the old load has landed in the cache: %v", f)
		}
		if f := s.CachedUser(0, 3); !hasName(f, "user 3") {
			t.Errorf("another id was forgotten: %v", f)
		}
	})
}

// announced records the order of what happens to a write.
type announced struct {
	mu     sync.Mutex
	events []string
}

func (a *announced) add(event string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events = append(a.events, event)
}

func (a *announced) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.events, ", ")
}

// TestAnnounceOrder is the seam's promise: commit, own cache, other caches, read back.
func TestAnnounceOrder(t *testing.T) {
	name := "new"
	broken := errors.New("connection lost after COMMIT")
	fails := func(_ context.Context, next func() error) error {
		_ = next()
		return broken
	}
	update := func(s *users.Service, id int64) error {
		_, err := s.Update(context.Background(), id, users.Patch{Name: &name})
		return err
	}
	for what, tt := range map[string]struct {
		onWrite func(context.Context, func() error) error
		call    func(s *users.Service) error
		want    string
		err     error
	}{
		"create": {
			call: func(s *users.Service) error {
				_, _, err := s.Create(context.Background(), users.NewUser{Name: name, Email: "x@example.com"})
				return err
			},
			want: "write, announce 3, read [3]",
		},
		"update": {
			call: func(s *users.Service) error { return update(s, 1) },
			want: "write, announce 1, read [1]",
		},
		"delete": {
			call: func(s *users.Service) error { return s.Delete(context.Background(), 1) },
			want: "write, announce 1",
		},
		"outcome unknown": {
			onWrite: fails,
			call:    func(s *users.Service) error { return update(s, 1) },
			want:    "write, announce 1", err: users.ErrUnavailable,
		},
		"outcome of a create unknown": {
			onWrite: fails,
			call: func(s *users.Service) error {
				_, _, err := s.Create(context.Background(), users.NewUser{Name: name, Email: "x@example.com"})
				return err
			},
			want: "write, announce 3", err: users.ErrUnavailable,
		},
		"panic": {
			onWrite: func(_ context.Context, next func() error) error {
				_ = next()
				panic("driver")
			},
			call: func(s *users.Service) error { return update(s, 1) },
			want: "write, announce 1", err: users.ErrUnavailable,
		},
		"not found": { // all caches agree with the answer
			call: func(s *users.Service) error { return s.Delete(context.Background(), 99) },
			want: "write, announce 99", err: users.ErrNotFound,
		},
		"create that stores nothing": {
			onWrite: func(context.Context, func() error) error { return broken },
			call: func(s *users.Service) error {
				_, _, err := s.Create(context.Background(), users.NewUser{Name: name, Email: "x@example.com"})
				return err
			},
			want: "write", err: users.ErrUnavailable,
		},
		"empty patch": {
			call: func(s *users.Service) error {
				_, err := s.Update(context.Background(), 1, users.Patch{})
				return err
			},
			want: "read [1]",
		},
		"wrong input": {
			call: func(s *users.Service) error {
				empty := ""
				_, _, createErr := s.Create(context.Background(), users.NewUser{})
				_, updateErr := s.Update(context.Background(), 1, users.Patch{Name: &empty})
				var field *users.FieldError
				if !errors.As(createErr, &field) || !errors.As(updateErr, &field) {
					return fmt.Errorf("accepted: %w, %w", createErr, updateErr)
				}
				return nil
			},
			want: "",
		},
	} {
		t.Run(what, func(t *testing.T) {
			db := openDB(t)
			sample(t, db, 2)
			g, events := newGate(db), new(announced)
			g.onWrite = func(ctx context.Context, next func() error) error {
				events.add("write")
				if tt.onWrite != nil {
					return tt.onWrite(ctx, next)
				}
				return next()
			}
			g.onUsers = func(_ context.Context, ids []int64, next func() ([]users.User, error)) ([]users.User, error) {
				events.add(fmt.Sprint("read ", ids))
				return next()
			}
			var s *users.Service
			cfg := g.config()
			cfg.Announce = func(_ context.Context, id int64) error {
				if f := s.CachedUser(0, id); f != nil {
					t.Errorf("announced while the own cache answers %q", f.JSON())
				}
				events.add(fmt.Sprint("announce ", id))
				return nil
			}
			s = newService(t, cfg)
			if what != "empty patch" {
				mustLoad(t, s, 1, 2, 3, 99)
				events.mu.Lock()
				events.events = nil
				events.mu.Unlock()
			}
			if err := tt.call(s); !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			if got := events.String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A source that ends its goroutine in the middle of a write keeps the other caches
// from nothing.
func TestAnnounceWithoutGoroutine(t *testing.T) {
	db := openDB(t)
	sample(t, db, 1)
	g := newGate(db)
	g.onWrite = func(_ context.Context, next func() error) error {
		_ = next()
		runtime.Goexit()
		return nil
	}
	var ids []int64
	cfg := g.config()
	cfg.Announce = func(_ context.Context, id int64) error {
		ids = append(ids, id)
		return nil
	}
	s := newService(t, cfg)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Delete(context.Background(), 1)
	}()
	<-done
	if !slices.Equal(ids, []int64{1}) {
		t.Errorf("announced %v", ids)
	}
}

// The client leaves when its write is committed: the others must hear of it all the same.
func TestAnnounceOutlivesCaller(t *testing.T) {
	type key struct{}
	db := openDB(t)
	sample(t, db, 1)
	g := newGate(db)
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "trace"))
	g.onWrite = func(_ context.Context, next func() error) error {
		defer cancel()
		return next()
	}
	cfg := g.config()
	told := false
	cfg.Announce = func(ctx context.Context, _ int64) error {
		told = true
		if err := ctx.Err(); err != nil {
			t.Errorf("the announcement's context has ended: %v", err)
		}
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > users.DefaultAnnounceTimeout {
			t.Errorf("deadline %v, %v", deadline, ok)
		}
		if ctx.Value(key{}) != "trace" {
			t.Error("the caller's values are gone")
		}
		return nil
	}
	s := newService(t, cfg)
	if err := s.Delete(ctx, 1); err != nil {
		t.Error(err)
	}
	if !told {
		t.Error("nothing was announced")
	}
}

// The write is stored, but others may be stale: it is not reported as done, and that is
// counted, and told once.
func TestAnnounceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 1)
		var log bytes.Buffer
		cfg := newGate(db).config()
		cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		broken := errors.New("no supervisor")
		var err error
		cfg.Announce = func(context.Context, int64) error { return err }
		s := newService(t, cfg)
		check := func(step string, failed float64, warned, again int) {
			t.Helper()
			if n := counter(cfg.Stats, "cache_announce_failed_total", ""); n != failed {
				t.Errorf("%s: %v failures counted, want %v", step, n, failed)
			}
			text := log.String()
			if w, a := strings.Count(text, "level=WARN"), strings.Count(text, "level=INFO"); w != warned || a != again {
				t.Errorf("%s: %d warnings and %d of the end, want %d and %d: %s", step, w, a, warned, again, text)
			}
		}
		rename(t, s, 1, "zero")
		check("well", 0, 0, 0)
		err = broken
		for i := range 3 {
			name := fmt.Sprint("name ", i)
			f, err := s.Update(context.Background(), 1, users.Patch{Name: &name})
			if !errors.Is(err, users.ErrUnknownOutcome) || f != nil {
				t.Errorf("Update = %v, %v", f, err)
			}
		}
		check("failing", 3, 1, 0)
		if !strings.Contains(log.String(), `error="no supervisor"`) || !strings.Contains(log.String(), " id=1 ") {
			t.Errorf("logged %s", log.String())
		}
		err = nil
		rename(t, s, 1, "four")
		check("well again", 3, 1, 1)
		rename(t, s, 1, "five")
		check("still well", 3, 1, 1)

		cfg.Stats, cfg.AnnounceTimeout = newGate(db).config().Stats, time.Second
		cfg.Announce = func(ctx context.Context, _ int64) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		s = newService(t, cfg)
		start := time.Now()
		f, id, createErr := s.Create(context.Background(), users.NewUser{Name: "slow", Email: "x@example.com"})
		if !errors.Is(createErr, users.ErrUnknownOutcome) || id != 2 || f != nil {
			t.Errorf("Create = %v, %d, %v", f, id, createErr)
		}
		if d := time.Since(start); d < time.Second || d > 2*time.Second {
			t.Errorf("a relay that hangs held the write up for %v", d)
		}
		check("no answer", 1, 2, 1)
		if !strings.Contains(log.String(), "did not confirm in time") {
			t.Errorf("logged %s", log.String())
		}
	})
}

// twoCaches returns two services over one file. Each announces to the other if told is
// set.
func twoCaches(t *testing.T, told bool, ids int) [2]*users.Service {
	t.Helper()
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "users.db")
	first := openDSN(t, dsn)
	sample(t, first, ids)
	gates := [2]*gate{newGate(first), newGate(openDSN(t, dsn))}
	var services [2]*users.Service
	for i, g := range gates {
		cfg := g.config()
		if told {
			cfg.Announce = func(_ context.Context, id int64) error {
				time.Sleep(rand.N(200 * time.Microsecond)) // a relay takes its time
				services[1-i].Forget(id)
				return nil
			}
		}
		services[i] = newService(t, cfg)
	}
	return services
}

// Whatever one cache holds of an id, a write through the other ends it; a "not there"
// too.
func TestTwoCaches(t *testing.T) {
	ctx := context.Background()
	for _, told := range []bool{true, false} {
		t.Run(fmt.Sprint("told ", told), func(t *testing.T) {
			s := twoCaches(t, told, 2)
			if f := mustLoad(t, s[1], 1, 2, 3); !f[2].Missing() {
				t.Fatal("id 3 is there")
			}
			rename(t, s[0], 1, "new")
			if err := s[0].Delete(ctx, 2); err != nil {
				t.Fatal(err)
			}
			if _, id, err := s[0].Create(ctx, users.NewUser{Name: "three", Email: "x@example.com"}); err != nil || id != 3 {
				t.Fatal(id, err)
			}
			f := mustLoad(t, s[1], 1, 2, 3)
			fresh := [3]bool{hasName(f[0], "new"), f[1].Missing(), hasName(f[2], "three")}
			if fresh != [3]bool{told, told, told} { // untold, the test would prove nothing if they were fresh
				t.Errorf("update, delete and create seen: %v", fresh)
			}
		})
	}
}

// TestNoStaleReadsOfTwoCaches reads and writes at random through both caches, and holds
// every answer against what had been written when the read began.
func TestNoStaleReadsOfTwoCaches(t *testing.T) {
	const ids, workers, each = 16, 4, 500
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	floor := make([]atomic.Int64, ids+1)
	var checkers [2]*checker
	for i, s := range twoCaches(t, true, ids) {
		checkers[i] = &checker{service: s, floor: floor}
	}
	for id := int64(1); id <= ids; id++ {
		if err := checkers[id%2].write(id, 1); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for w := range int64(workers) { // each id has one writer, so its versions only grow
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(w)))
			for v := int64(2); v < 2+each; v++ {
				c, err := checkers[rng.IntN(2)], error(nil)
				if rng.IntN(4) == 0 {
					err = c.write(1+w+workers*rng.Int64N(ids/workers), v)
				} else {
					err = c.read(rng, ids)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for i, c := range checkers {
		t.Logf("cache %d: %d reads, %d of them from the cache; %d writes", i, c.reads.Load(), c.hits.Load(), c.writes.Load())
		if c.hits.Load() == 0 || c.writes.Load() == 0 {
			t.Errorf("cache %d: nothing was proven: no read came from it, or there was no write", i)
		}
	}
}
