package users_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pinion/internal/stats"
	"pinion/users"
)

var modelSeed = flag.Uint64("model.seed", 0, "seed of TestModel; 0: a random one")

const (
	modelIDs   = 8
	modelTime  = 10 * time.Second // of the bubble
	modelBound = 3 * time.Second  // after which every instance knows of a write
)

// model is a world of two instances over one database and one shared cache. Everything
// takes time, and how long decides what meets what; most of it fails now and then. The
// time is that of a bubble, so a seed gives the same run again, or nearly.
type model struct {
	users.Rows // of which nothing is used but what is below
	t          *testing.T
	cache      *memoryShared
	voids      *memoryVoids
	instances  [2]*instance
	calm       atomic.Bool // nothing fails any more

	mu      sync.Mutex
	rng     *rand.Rand
	stored  [modelIDs + 1]int64 // versions in the database
	history [modelIDs + 1][]ack

	reads, fromL1, stale, writes, unknown, lostVoids, losses atomic.Int64
}

// ack is a write that was answered as done.
type ack struct {
	version int64
	at      time.Time
}

// instance is a Service, its link to the shared cache, and what its reads must not be
// older than: the writes that it has acknowledged, and those that it was told of.
type instance struct {
	*users.Service
	stats *stats.Registry
	floor [modelIDs + 1]atomic.Int64

	mu     sync.Mutex
	up     bool
	pushes chan push
}

// push is the removal of an id, by a write of version or later.
type push struct{ id, version int64 }

func (n *instance) raise(id, version int64) {
	for {
		old := n.floor[id].Load()
		if old >= version || n.floor[id].CompareAndSwap(old, version) {
			return
		}
	}
}

func (m *model) random(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rng.IntN(n)
}

// chance is true in percent of all cases, as long as things may fail.
func (m *model) chance(percent int) bool { return !m.calm.Load() && m.random(100) < percent }

// pass lets some time go by, seldom much.
func (m *model) pass() {
	d := m.random(300)
	if m.random(20) == 0 {
		d = m.random(20_000)
	}
	time.Sleep(time.Duration(d)*time.Microsecond + time.Duration(m.random(1000)))
}

var errModel = errors.New("made up")

func (m *model) Users(_ context.Context, ids []int64) ([]users.User, error) {
	m.pass()
	if m.chance(2) {
		return nil, errModel
	}
	rows := make([]users.User, 0, len(ids))
	m.mu.Lock()
	for _, id := range ids {
		rows = append(rows, users.User{ID: id, Name: strconv.FormatInt(m.stored[id], 10)})
	}
	m.mu.Unlock()
	m.pass()
	return rows, nil
}

func (m *model) Update(_ context.Context, id int64, p users.Patch) error {
	version, err := strconv.ParseInt(*p.Name, 10, 64)
	if err != nil {
		return err
	}
	m.pass()
	lost, done := m.chance(5), m.random(2) == 0
	if !lost || done {
		m.mu.Lock()
		m.stored[id] = version
		m.mu.Unlock()
	}
	m.pass()
	if lost {
		return fmt.Errorf("%w: %w", users.ErrUnknownOutcome, errModel)
	}
	return nil
}

// beforeShared has calls of the shared cache take time and fail, some of them only after
// they have had their effect.
func (m *model) beforeShared(_ context.Context, call string, id int64) error {
	m.pass()
	void := strings.HasPrefix(call, "void")
	if !m.chance(2) && (!void || !m.chance(5)) {
		return nil
	}
	if void {
		m.lostVoids.Add(1)
		if m.random(2) == 0 {
			m.cache.mu.Lock()
			defer m.cache.mu.Unlock()
			delete(m.cache.json, id)
			delete(m.cache.leases, id)
			m.cache.voided(id)
		}
	}
	return errModel
}

// voided pushes a removal to the instances that can be reached.
func (m *model) voided(id int64) {
	m.mu.Lock()
	version := m.stored[id]
	m.mu.Unlock()
	for _, n := range m.instances {
		n.mu.Lock()
		if n.up {
			n.pushes <- push{id, version}
		}
		n.mu.Unlock()
	}
}

// deliver is the tracking connection of n.
func (m *model) deliver(n *instance) {
	for p := range n.pushes {
		m.pass()
		n.mu.Lock()
		if n.up {
			n.Forget(p.id)
			n.raise(p.id, p.version)
		}
		n.mu.Unlock()
	}
}

// lose takes the link of n away now and then, and tells n a little later.
func (m *model) lose(n *instance, stop time.Time) {
	for time.Now().Before(stop) {
		time.Sleep(time.Duration(m.random(3000)) * time.Millisecond)
		m.losses.Add(1)
		n.mu.Lock()
		n.up = false
		for len(n.pushes) > 0 {
			<-n.pushes
		}
		n.mu.Unlock()
		m.pass()
		n.SetCoherent(false)
		time.Sleep(time.Duration(m.random(1500)) * time.Millisecond)
		n.mu.Lock()
		n.up = true
		n.mu.Unlock()
		n.SetCoherent(true)
	}
}

// write is the only writer of id, through one instance or the other.
func (m *model) write(id int64, stop time.Time) {
	for version := int64(2); time.Now().Before(stop); version++ {
		n := m.instances[m.random(len(m.instances))]
		name := strconv.FormatInt(version, 10)
		m.writes.Add(1)
		f, err := n.Update(context.Background(), id, users.Patch{Name: &name})
		switch {
		case errors.Is(err, users.ErrUnknownOutcome):
			m.unknown.Add(1)
		case err == nil:
			n.raise(id, version)
			m.mu.Lock()
			m.history[id] = append(m.history[id], ack{version, time.Now()})
			m.mu.Unlock()
			if !hasName(f, name) {
				m.t.Errorf("id %d: wrote version %d and read back %s", id, version, f.JSON())
			}
		}
		time.Sleep(time.Duration(m.random(60_000)) * time.Microsecond)
	}
}

// known is the version of id that all must know of a write that was answered at t.
func (m *model) known(id int64, t time.Time) (version int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.history[id] {
		if a.at.Before(t) {
			version = a.version
		}
	}
	return version
}

func (m *model) read(n *instance, stop time.Time) {
	for time.Now().Before(stop) {
		b := users.Batch{}
		for id := int64(1); id <= modelIDs; id++ {
			if m.random(3) == 0 {
				b.IDs = append(b.IDs, id)
			}
		}
		floor, known := make([]int64, len(b.IDs)), make([]int64, len(b.IDs))
		for i, id := range b.IDs {
			floor[i], known[i] = n.floor[id].Load(), m.known(id, time.Now().Add(-modelBound))
		}
		m.reads.Add(1)
		var err error
		if n.Cached(&b) {
			m.fromL1.Add(1)
		} else {
			err = n.Load(context.Background(), &b)
		}
		for i, f := range b.Fragments {
			if f == nil {
				continue
			}
			version, parseErr := modelVersion(f)
			old := f.Degraded()&users.DegradedStale != 0
			if old {
				m.stale.Add(1)
			}
			if parseErr != nil || version < floor[i] || !old && version < known[i] {
				m.t.Errorf("%v: id %d of instance %p: version %d; it knew of %d, and had to know of %d (%v, %v)",
					time.Now(), b.IDs[i], n, version, floor[i], known[i], parseErr, err)
			}
		}
		time.Sleep(time.Duration(m.random(8000)) * time.Microsecond)
	}
}

func modelVersion(f *users.Fragment) (int64, error) {
	_, rest, _ := strings.Cut(string(f.JSON()), `"name":"`)
	text, _, _ := strings.Cut(rest, `"`)
	return strconv.ParseInt(text, 10, 64)
}

// TestModel holds every read of two instances against what the one that answers it has
// acknowledged or been told of, while everything fails, and in the end all must agree.
func TestModel(t *testing.T) {
	runs := 2
	if *modelSeed != 0 {
		runs = 1
	}
	for range runs {
		seed := *modelSeed
		if seed == 0 {
			seed = rand.Uint64()
		}
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runModel(t, seed) })
		})
	}
}

func runModel(t *testing.T, seed uint64) {
	m := &model{t: t, rng: rand.New(rand.NewPCG(seed, 1)), cache: newMemoryShared(), voids: new(memoryVoids)}
	m.cache.before, m.cache.voided = m.beforeShared, m.voided
	m.voids.fail = func(string) error {
		m.pass()
		if m.chance(10) {
			return errModel
		}
		return nil
	}
	for id := range m.stored {
		m.stored[id] = 1
	}
	for i := range m.instances {
		reg := stats.NewRegistry(1)
		m.instances[i] = &instance{
			Service: newService(t, users.Config{
				Rows: m, Shared: m.cache, Voids: m.voids, Stats: reg, Log: slog.New(slog.DiscardHandler),
			}),
			stats: reg, up: true, pushes: make(chan push, 1<<12),
		}
	}
	stop := time.Now().Add(modelTime)
	var wg, links sync.WaitGroup
	for _, n := range m.instances {
		n.SetCoherent(true)
		links.Go(func() { m.deliver(n) })
		wg.Go(func() { m.lose(n, stop) })
		for range 3 {
			wg.Go(func() { m.read(n, stop) })
		}
	}
	for id := int64(1); id <= modelIDs; id++ {
		wg.Go(func() { m.write(id, stop) })
	}
	wg.Wait()

	m.calm.Store(true)
	time.Sleep(modelBound)
	hits := 0.0
	for i, n := range m.instances {
		for id := int64(1); id <= modelIDs; id++ {
			if version, err := modelVersion(mustLoad(t, n.Service, id)[0]); version != m.stored[id] {
				t.Errorf("in the end instance %d answers version %d of id %d, want %d; %v", i, version, id, m.stored[id], err)
			}
		}
		hits += counter(n.stats, "cache_requests_total", "l2,hit")
	}
	if m.voids.len() != 0 {
		t.Errorf("%d removals are still owed", m.voids.len())
	}
	for _, n := range m.instances {
		close(n.pushes)
	}
	links.Wait()
	t.Logf("%d reads, %d of them from L1, %v users from L2, %d old; %d writes, %d of them of unknown outcome; %d removals failed, %d links lost",
		m.reads.Load(), m.fromL1.Load(), hits, m.stale.Load(), m.writes.Load(), m.unknown.Load(), m.lostVoids.Load(), m.losses.Load())
	for _, n := range []int64{m.fromL1.Load(), int64(hits), m.writes.Load() - m.unknown.Load(), m.lostVoids.Load(), m.losses.Load()} {
		if n == 0 {
			t.Error("nothing was proven")
		}
	}
}
