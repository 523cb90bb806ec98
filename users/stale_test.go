package users_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pinion/users"
)

// holdFirst lets the first call of Users read, and gives its answer out only when
// release is closed: what it holds may be old by then.
func holdFirst(g *gate, release <-chan struct{}) {
	var first atomic.Bool
	g.onUsers = func(_ context.Context, _ []int64, next func() ([]users.User, error)) ([]users.User, error) {
		rows, err := next()
		if first.CompareAndSwap(false, true) {
			hold(release)
		}
		return rows, err
	}
}

// hold waits for release. In a bubble the minute costs nothing, and a test that would
// wait for ever fails instead.
func hold(release <-chan struct{}) {
	select {
	case <-release:
	case <-time.After(time.Minute):
	}
}

// A load that read before a write answers those who waited, and nobody else.
func TestWriteVoidsLoad(t *testing.T) {
	for name, write := range map[string]func(t *testing.T, s *users.Service){
		"update": func(t *testing.T, s *users.Service) { rename(t, s, 1, "new") },
		"delete": func(t *testing.T, s *users.Service) {
			if err := s.Delete(context.Background(), 1); err != nil {
				t.Error(err)
			}
		},
	} {
		check := func(t *testing.T, what string, f *users.Fragment) {
			t.Helper()
			if name == "update" && !hasName(f, "new") || name == "delete" && !f.Missing() {
				t.Errorf("%s: got %s", what, f.JSON())
			}
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := openDB(t)
				sample(t, db, 2)
				g := newGate(db)
				release := make(chan struct{})
				holdFirst(g, release)
				s := newService(t, g.config())

				waited := make(chan []*users.Fragment)
				go func() { waited <- mustLoad(t, s, 1, 2) }()
				synctest.Wait()
				write(t, s)
				// Does not join the old load, which is still out.
				check(t, "after the write", mustLoad(t, s, 1)[0])

				close(release)
				if f := <-waited; !hasName(f[0], "user 1") || !hasName(f[1], "user 2") {
					t.Errorf("waiters from before the write got %s, %s", f[0].JSON(), f[1].JSON())
				}
				check(t, "after the old load has landed", mustLoad(t, s, 1)[0])
				// The rest of the batch is as good as ever.
				if f := s.CachedUser(0, 2); !hasName(f, "user 2") {
					t.Error("the other id of the voided load was not cached")
				}
			})
		})
	}
}

// The old load lands between the commit and the return of the write.
func TestLoadLandsDuringWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 1)
		g := newGate(db)
		releaseRead, releaseWrite := make(chan struct{}), make(chan struct{})
		holdFirst(g, releaseRead)
		g.onWrite = func(_ context.Context, next func() error) error {
			err := next()
			hold(releaseWrite)
			return err
		}
		s := newService(t, g.config())
		go mustLoad(t, s, 1)
		synctest.Wait()
		written := make(chan struct{})
		go func() {
			rename(t, s, 1, "new")
			close(written)
		}()
		synctest.Wait()
		close(releaseRead)
		synctest.Wait()
		if f := s.CachedUser(0, 1); !hasName(f, "user 1") {
			t.Errorf("the write has not returned, yet the cache holds %v", f)
		}
		close(releaseWrite)
		<-written
		if f := mustLoad(t, s, 1)[0]; !hasName(f, "new") {
			t.Errorf("after the write: %s", f.JSON())
		}
	})
}

// The rows are new, the attributes were read before the write: such a mix is never kept.
func TestMixedLoadIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 1)
		g := newGate(db)
		var first atomic.Bool
		release := make(chan struct{})
		g.onAttributes = func(_ context.Context, next func() (map[int64][]users.Attribute, error)) (map[int64][]users.Attribute, error) {
			attributes, err := next()
			if first.CompareAndSwap(false, true) {
				hold(release)
			}
			return attributes, err
		}
		s := newService(t, g.config())
		go mustLoad(t, s, 1)
		synctest.Wait()
		if _, err := s.Update(context.Background(), 1, users.Patch{Attributes: &[]users.Attribute{{Key: "k", Value: "new"}}}); err != nil {
			t.Fatal(err)
		}
		close(release)
		synctest.Wait()
		if f := mustLoad(t, s, 1)[0]; !strings.Contains(string(f.JSON()), `"attributes":{"k":"new"}`) {
			t.Errorf("got %s", f.JSON())
		}
	})
}

// An id that was asked for before it was given out.
func TestCreateVoidsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		g := newGate(db)
		release := make(chan struct{})
		holdFirst(g, release)
		s := newService(t, g.config())
		go mustLoad(t, s, 1) // on its way with "not there"
		synctest.Wait()
		f, id, err := s.Create(context.Background(), users.NewUser{Name: "one", Email: "x@example.com"})
		if err != nil || id != 1 || !hasName(f, "one") {
			t.Fatal(f, id, err)
		}
		close(release)
		synctest.Wait()
		if f := s.CachedUser(0, 1); !hasName(f, "one") {
			t.Errorf("cached %v", f)
		}
		if f := mustLoad(t, s, 2)[0]; !f.Missing() { // cached as "not there"
			t.Fatal(string(f.JSON()))
		}
		if _, id, err := s.Create(context.Background(), users.NewUser{Name: "two", Email: "x@example.com"}); err != nil || id != 2 {
			t.Fatal(id, err)
		}
		if f := mustLoad(t, s, 2)[0]; !hasName(f, "two") {
			t.Errorf("got %s", f.JSON())
		}
	})
}

// TestNoStaleReads reads and writes at random and holds every answer against what had
// been written when the read began.
func TestNoStaleReads(t *testing.T) {
	for name, l1Bytes := range map[string]int64{"all cached": 0, "evicting": 4 << 10} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			// A file, so that reads run beside the writes, each on its own snapshot.
			db := openDSN(t, "sqlite:"+filepath.Join(t.TempDir(), "users.db"))
			const ids = 16
			sample(t, db, ids)
			cfg := newGate(db).config()
			cfg.L1Bytes = l1Bytes
			c := checker{service: newService(t, cfg), floor: make([]atomic.Int64, ids+1)}
			for i := int64(1); i <= ids; i++ {
				if err := c.write(i, 1); err != nil {
					t.Fatal(err)
				}
			}
			stop := time.Now().Add(time.Second)
			var wg sync.WaitGroup
			for w := range int64(2) { // each id has one writer, so its versions only grow
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(seed, uint64(w)))
					for v := int64(2); time.Now().Before(stop); v++ {
						if err := c.write(1+w+2*rng.Int64N(ids/2), v); err != nil {
							t.Error(err)
							return
						}
						time.Sleep(time.Duration(rng.IntN(300)) * time.Microsecond)
					}
				})
			}
			for r := range 6 {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(seed, uint64(100+r)))
					for time.Now().Before(stop) {
						if err := c.read(rng, ids); err != nil {
							t.Error(err)
							return
						}
						time.Sleep(time.Duration(rng.IntN(100)) * time.Microsecond)
					}
				})
			}
			wg.Wait()
			t.Logf("%d reads, %d of them from the cache; %d writes", c.reads.Load(), c.hits.Load(), c.writes.Load())
			if c.hits.Load() == 0 || c.writes.Load() == 0 {
				t.Error("nothing was proven: no read came from the cache, or there was no write")
			}
			if c.reads.Load() == 0 || c.writes.Load() == 0 {
				t.Error("nothing was checked")
			}
		})
	}
}

// checker writes versions into users and checks that reads never go back.
type checker struct {
	service *users.Service
	floor   []atomic.Int64 // by id: the newest version whose write has returned

	reads, hits, writes atomic.Int64
}

func (c *checker) write(id, version int64) error {
	text := strconv.FormatInt(version, 10)
	f, err := c.service.Update(context.Background(), id, users.Patch{
		Name: &text, Attributes: &[]users.Attribute{{Key: "v", Value: text}},
	})
	if err != nil {
		return err
	}
	c.floor[id].Store(version)
	c.writes.Add(1)
	return checkVersion(f, id, version)
}

// read asks for some ids at random, sometimes leaving before the answer.
func (c *checker) read(rng *rand.Rand, ids int) error {
	b := users.Batch{}
	for _, i := range rng.Perm(ids)[:1+rng.IntN(4)] {
		b.IDs = append(b.IDs, int64(i)+1)
	}
	floor := make([]int64, len(b.IDs))
	for i, id := range b.IDs {
		floor[i] = c.floor[id].Load()
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if rng.IntN(4) == 0 {
		defer time.AfterFunc(time.Duration(rng.IntN(200))*time.Microsecond, cancel).Stop()
	}
	c.reads.Add(1)
	if c.service.Cached(&b) {
		c.hits.Add(1)
	} else if err := c.service.Load(ctx, &b); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	for i, f := range b.Fragments {
		if err := checkVersion(f, b.IDs[i], floor[i]); err != nil {
			return err
		}
	}
	return nil
}

func checkVersion(f *users.Fragment, id, floor int64) error {
	var u struct {
		ID         int64
		Name       string
		Attributes map[string]string
	}
	if err := json.Unmarshal(f.JSON(), &u); err != nil {
		return err
	}
	versions := []string{u.Name, u.Attributes["v"]}
	for _, text := range versions {
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v < floor || u.ID != id {
			return fmt.Errorf("id %d: read versions %v of id %d after %d was written: %w", id, versions, u.ID, floor, err)
		}
	}
	if f.Degraded() != 0 {
		return fmt.Errorf("id %d: degraded %d", id, f.Degraded())
	}
	return nil
}
