package users

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"pinion/internal/stats"
)

// maxFills is how many entries wait at most to be stored in the shared cache: those of a
// few hundred cold requests. What comes on top is dropped: the next who misses it will
// fill it.
const maxFills = 16384

// l2 is the shared cache as this process uses it. A nil *l2 is that of a process
// without one.
type l2 struct {
	cache   SharedCache
	voids   VoidLog // nil: none
	source  *source // of lookups
	writes  *source // the same, for what changes the cache
	logged  *source // of voids, whose failures do not keep anybody from reading users
	lookups *batcher[Shared]
	base    context.Context
	work    *sync.WaitGroup
	log     *slog.Logger

	hits, negatives, misses, errors *stats.Counter
	filled, dropped                 *stats.Counter

	// epoch is 0 while the cache must not be used. It is another number after each such
	// time: what was read before is not stored after.
	epoch atomic.Uint64

	mu       sync.Mutex
	epochs   uint64
	tracking bool               // every removal is pushed to us
	coherent bool               // L1 has nothing in it from a time when that was not so
	settled  bool               // no removal is owed, as far as we know
	logging  int                // removals that are failing: not yet in the log, or not in owed
	failures uint64             // that there have been
	turns    uint64             // of tracking
	owed     map[int64]struct{} // removals that are not in the log either
	wake     chan struct{}      // of the keeper

	fillMu  sync.Mutex
	fills   []fill
	filling bool
}

// fill is an entry to be stored, and the epoch that its lease is of.
type fill struct {
	SharedEntry
	epoch uint64
}

func (c *l2) fetch(ctx context.Context, ids []int64, values []Shared) error {
	found, err := c.cache.Lookup(ctx, ids)
	if err != nil {
		return err
	}
	if len(found) != len(ids) {
		return fmt.Errorf("%d answers for %d ids", len(found), len(ids))
	}
	copy(values, found)
	return nil
}

// usable returns the epoch of a load that begins now, or 0: not to be used.
func (c *l2) usable() uint64 {
	if c == nil {
		return 0
	}
	return c.epoch.Load()
}

// sharedShare is the part of its patience that a load gives to the shared cache.
const sharedShare = 4

// fillShared answers calls of l from the shared cache, and reports whether it had all.
// Without an answer in time the sources are asked, and nothing will be stored.
func (s *Service) fillShared(ctx context.Context, l *load) bool {
	c := s.shared
	ids := make([]int64, len(l.calls))
	for i := range l.calls {
		ids[i] = l.calls[i].id
	}
	lookup := askFor(c.lookups, l.shard, ids)
	if err := lookup.wait(ctx, time.Now().Add(l.patience/sharedShare)); err != nil {
		c.errors.Add(l.shard, uint64(len(ids)))
		return false
	}
	var hits, negatives, misses uint64
	for i := range l.calls {
		call := &l.calls[i]
		switch found := &lookup.request.values[i]; {
		case found.State == SharedUser && len(found.JSON) > 0:
			call.fragment = newFragment(found.JSON, 0)
			hits++
		case found.State == SharedMissing:
			call.fragment = s.missing
			negatives++
		default:
			call.lease = found.Lease
			misses++
		}
	}
	c.hits.Add(l.shard, hits)
	c.negatives.Add(l.shard, negatives)
	c.misses.Add(l.shard, misses)
	return misses == 0
}

// fills are the entries that a load has found out and may store.
func (l *load) fills() []SharedEntry {
	var entries []SharedEntry
	for i := range l.calls {
		c := &l.calls[i]
		if c.lease == 0 || c.fragment == nil || c.fragment.Degraded() != 0 {
			continue
		}
		if entries == nil {
			entries = make([]SharedEntry, 0, len(l.calls)-i)
		}
		entries = append(entries, SharedEntry{ID: c.id, Lease: c.lease, JSON: c.fragment.json})
	}
	return entries
}

// fill stores entries some time soon, if the cache can still be used under epoch then. It
// does not wait for the cache.
func (c *l2) fill(epoch uint64, entries []SharedEntry) {
	if len(entries) == 0 {
		return
	}
	c.fillMu.Lock()
	defer c.fillMu.Unlock()
	if len(c.fills)+len(entries) > maxFills {
		c.dropped.Add(0, uint64(len(entries)))
		return
	}
	for _, e := range entries {
		c.fills = append(c.fills, fill{SharedEntry: e, epoch: epoch})
	}
	if !c.filling {
		c.filling = true
		c.work.Go(c.store)
	}
}

// store stores up to maxQuery of the entries that wait. It ends when there are none.
func (c *l2) store() {
	c.fillMu.Lock()
	epoch := c.epoch.Load()
	n := min(len(c.fills), maxQuery)
	entries := make([]SharedEntry, 0, n)
	for _, f := range c.fills[:n] {
		if f.epoch == epoch {
			entries = append(entries, f.SharedEntry)
		}
	}
	rest := copy(c.fills, c.fills[n:])
	clear(c.fills[rest:])
	c.fills = c.fills[:rest]
	c.fillMu.Unlock()

	stored := false
	defer func() {
		c.dropped.Add(0, uint64(n-len(entries)))
		if stored {
			c.filled.Add(0, uint64(len(entries)))
		} else {
			c.dropped.Add(0, uint64(len(entries)))
		}
		c.fillMu.Lock()
		defer c.fillMu.Unlock()
		if c.filling = len(c.fills) > 0; c.filling {
			// On a new goroutine: the cache may have ended this one.
			c.work.Go(c.store)
		}
	}()
	if len(entries) == 0 {
		return
	}
	_, err := ask(c.base, c.writes, 0, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.cache.Store(ctx, entries)
	})
	stored = err == nil
}
