package users

import (
	"math/rand/v2"
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
	entryOverhead   = 160
	missingOverhead = 112 // all missing entries share one Fragment
)

// l1 holds the finished fragments of this process. get may be called from anywhere;
// set and remove only under the stripe lock of the id, which is what keeps a load
// that a write has voided from bringing old data back.
type l1 struct {
	cache *otter.Cache[int64, *Fragment]
	clock *otter.CoarseClock
}

func newL1(cfg *Config) *l1 {
	clock := otter.NewCoarseClock(clockResolution)
	found, missing, degraded := cfg.TTL, cfg.MissingTTL, cfg.DegradedTTL
	// Must fails on contradictory options only, and setDefaults leaves none.
	cache := otter.Must(&otter.Options[int64, *Fragment]{
		MaximumWeight: uint64(cfg.L1Bytes),
		Weigher:       func(_ int64, f *Fragment) uint32 { return f.weight() },
		// Counting from the write, an entry never outlives its time to live however
		// often it is read.
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[int64, *Fragment]) time.Duration {
			switch {
			case e.Value.Degraded() != 0:
				return degraded
			case e.Value.Missing():
				return spread(missing)
			default:
				return spread(found)
			}
		}),
		Clock: clock,
	})
	return &l1{cache: cache, clock: clock}
}

// spread adds up to a fifth at random, so that entries that were filled together do
// not all run out together.
func spread(ttl time.Duration) time.Duration {
	return ttl + rand.N(ttl/5+1)
}

// size is about how many entries there are.
func (c *l1) size() int { return c.cache.EstimatedSize() }

func (c *l1) get(id int64) (*Fragment, bool) { return c.cache.GetIfPresent(id) }

func (c *l1) set(id int64, f *Fragment) { c.cache.Set(id, f) }

func (c *l1) remove(id int64) { c.cache.Invalidate(id) }

// close stops the goroutines of the cache and of its clock. The entries stay readable.
func (c *l1) close() {
	c.cache.StopAllGoroutines()
	c.clock.Stop()
}

// weight is what the fragment costs in the cache, in bytes.
func (f *Fragment) weight() uint32 {
	if f.Missing() {
		return missingOverhead
	}
	return entryOverhead + f.held
}
