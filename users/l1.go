package users

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
)

// clockResolution is how far the cache's idea of the time may lag behind.
// Reading the precise time costs more than the rest of a hit (BenchmarkCachedUser);
// entries that live for seconds need no better. See otter.NewCoarseClock.
const clockResolution = 50 * time.Millisecond

// entryOverhead is what an entry holds beside its JSON, in bytes: the cache's node,
// its share of the hash table (kept at most 3/4 full, and larger while it grows),
// the Fragment and the rounding of both to allocation size classes. An estimate on
// the safe side; TestL1Weight compares it with the heap.
const (
	entryOverhead   = 176
	missingOverhead = 112 // all missing entries share one Fragment
)

// l1 holds the finished fragments of this process. get may be called from anywhere;
// set and remove only under the stripe lock of the id, which is what keeps a load
// that a write has voided from bringing old data back.
//
// An entry is fresh for its time to live, and kept for longer: old has it when nothing
// better can be had.
type l1 struct {
	clock *otter.CoarseClock
	cfg   *Config
	cache atomic.Pointer[otter.Cache[int64, *Fragment]]
	// mu keeps flush from starting goroutines when close has stopped them.
	mu     sync.Mutex
	closed bool
	// brief makes entries live for the time of degraded ones: removals may not reach us.
	brief atomic.Bool
}

func newL1(cfg *Config) *l1 {
	c := &l1{clock: otter.NewCoarseClock(clockResolution), cfg: cfg}
	c.cache.Store(c.fresh())
	return c
}

// fresh makes an empty cache.
func (c *l1) fresh() *otter.Cache[int64, *Fragment] {
	maximum, missing, keep := uint64(c.cfg.L1Bytes), c.cfg.MissingTTL, c.cfg.StaleTTL
	// Must fails on contradictory options only, and setDefaults leaves none.
	return otter.Must(&otter.Options[int64, *Fragment]{
		MaximumWeight: maximum,
		Weigher:       func(_ int64, f *Fragment) uint32 { return f.weight() },
		// Counting from the write, an entry never outlives its time to live however
		// often it is read.
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[int64, *Fragment]) time.Duration {
			if e.Value.Missing() {
				return c.ttl(spread(missing))
			}
			return time.Duration(e.Value.expires-c.clock.NowNano()) + keep
		}),
		Clock: c.clock,
	})
}

// ttl is how long an entry is fresh that would be so for d in good times.
func (c *l1) ttl(d time.Duration) time.Duration {
	if c.brief.Load() {
		return min(d, c.cfg.DegradedTTL)
	}
	return d
}

// spread adds up to a fifth at random, so that entries that were filled together do
// not all run out together.
func spread(ttl time.Duration) time.Duration {
	return ttl + rand.N(ttl/5+1)
}

// size is about how many entries there are.
func (c *l1) size() int { return c.cache.Load().EstimatedSize() }

// get returns the fragment of id if it is fresh.
func (c *l1) get(id int64) (*Fragment, bool) {
	f := c.reader().get(id)
	return f, f != nil
}

// reader reads many entries at the price of one look at the clock. It is for one short
// run of reads.
type reader struct {
	cache *otter.Cache[int64, *Fragment]
	now   int64
}

func (c *l1) reader() reader { return reader{cache: c.cache.Load(), now: c.clock.NowNano()} }

// get returns the fragment of id if it is fresh, else nil.
func (r reader) get(id int64) *Fragment {
	f, ok := r.cache.GetIfPresent(id)
	if !ok || f.expires <= r.now {
		return nil
	}
	return f
}

// old returns the fragment of id, fresh or not, or nil.
func (c *l1) old(id int64) *Fragment {
	f, _ := c.cache.Load().GetIfPresent(id)
	return f
}

// fitFrom reports whether what was asked of the sources from that time on may still be
// answered. Where removals are not pushed to us, time alone says that it is not too old.
func (c *l1) fitFrom(began int64) bool {
	return !c.brief.Load() || c.clock.NowNano() < began+int64(c.cfg.DegradedTTL)
}

// set makes f, which was asked for from began on, the fragment of id. Nobody else may have
// f yet, unless it is that of missing users.
func (c *l1) set(id int64, f *Fragment, began int64) {
	switch {
	case c.brief.Load():
		if f.Missing() || !c.fitFrom(began) {
			return
		}
		f.expires = began + int64(c.cfg.DegradedTTL)
	case f.Missing():
	case f.Degraded() != 0:
		f.expires = c.clock.NowNano() + int64(c.cfg.DegradedTTL)
	default:
		f.expires = c.clock.NowNano() + int64(c.ttl(spread(c.cfg.TTL)))
	}
	c.cache.Load().Set(id, f)
}

func (c *l1) remove(id int64) { c.cache.Load().Invalidate(id) }

// flush forgets all entries at once, however many there are. Loads in progress must have
// been voided before.
func (c *l1) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		c.cache.Load().InvalidateAll()
		return
	}
	old := c.cache.Swap(c.fresh())
	old.StopAllGoroutines()
}

// close stops the goroutines of the cache and of its clock. The entries stay readable.
func (c *l1) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.cache.Load().StopAllGoroutines()
	c.clock.Stop()
}

// weight is what the fragment costs in the cache, in bytes.
func (f *Fragment) weight() uint32 {
	if f.Missing() {
		return missingOverhead
	}
	return entryOverhead + f.held
}
