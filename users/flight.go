package users

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// load is one shared call of the sources for the ids that nobody else was loading.
// It runs on its own goroutine under its own context, which ends when the last
// waiter has left.
type load struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	shard   uint64
	calls   []call // never grows past its capacity: others hold pointers into it
	waiters atomic.Int64
	done    chan struct{} // closed when err and all fragments are final
	err     error         // of the calls without a fragment
	began   int64         // by the clock of the cache

	// patience is how long the load waits for what it can do without. hasty says that its
	// first waiter has so little of it that others must not be content with the answer.
	patience time.Duration
	hasty    bool
}

// call is one id of a load.
type call struct {
	load     *load
	id       int64
	fragment *Fragment // nil: failed
	lease    Lease     // to store the fragment in the shared cache
}

// makeshift reports whether the fragment may lack something only because the load was
// hasty. It is not kept.
func (c *call) makeshift() bool {
	return c.load.hasty && c.fragment != nil && c.fragment.Degraded() != 0
}

// enter adds a waiter. It fails once the last waiter has left: such a load is being
// cancelled, and its failure is nobody's answer.
func (l *load) enter() bool {
	for {
		n := l.waiters.Load()
		if n == 0 {
			return false
		}
		if l.waiters.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (l *load) leave() {
	if l.waiters.Add(-1) == 0 {
		l.cancel(errNoWaiters)
	}
}

// stripeCount spreads the locks of the flight table; a power of two.
const stripeCount = 64

// flights is the table of ids that are being loaded. The lock of an id's stripe also
// guards every change of its L1 entry.
type flights struct {
	cache   *l1
	stripes [stripeCount]stripe
}

type stripe struct {
	mu    sync.Mutex
	calls map[int64]*call
}

func newFlights(cache *l1) *flights {
	f := &flights{cache: cache}
	for i := range f.stripes {
		f.stripes[i].calls = make(map[int64]*call)
	}
	return f
}

func (f *flights) stripe(id int64) *stripe { return &f.stripes[uint64(id)%stripeCount] }

// join answers id from the cache, or finds the call that is loading it, or adds it to
// w's own load.
func (f *flights) join(id int64, w *waiter) (*Fragment, *call) {
	s := f.stripe(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	// A load may have landed since the caller looked.
	if fragment, ok := f.cache.get(id); ok {
		return fragment, nil
	}
	if c := s.calls[id]; c != nil && (w.hasty || !c.load.hasty) && f.cache.fitFrom(c.load.began) && w.enter(c.load) {
		return nil, c
	}
	c := w.add(id)
	s.calls[id] = c
	return nil, c
}

// land puts the fragments of a finished load into the cache, except for makeshift ones
// and those whose call was voided by a write or replaced (because its waiters had left, or
// it was hasty), and wakes the waiters.
func (f *flights) land(l *load) {
	for i := range l.calls {
		c := &l.calls[i]
		s := f.stripe(c.id)
		s.mu.Lock()
		if s.calls[c.id] == c {
			delete(s.calls, c.id)
			if c.fragment != nil && !c.makeshift() {
				f.cache.set(c.id, c.fragment, l.began)
			}
		}
		s.mu.Unlock()
	}
	close(l.done)
}

// void makes the cache forget id, and any load that began before now: its waiters
// still get its answer, but nobody after them.
func (f *flights) void(id int64) {
	s := f.stripe(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, id)
	f.cache.remove(id)
}

// flush is void for all ids.
func (f *flights) flush() {
	for i := range f.stripes {
		s := &f.stripes[i]
		s.mu.Lock()
		clear(s.calls)
		s.mu.Unlock()
	}
	// A load that begins here may lose its entry, which is no harm. The other way round,
	// one that began earlier could land in the empty cache.
	f.cache.flush()
}

// waiter is one Load of one caller: the loads it waits for, at most one of them its own.
type waiter struct {
	hasty  bool // has little time, and takes what a hasty load has
	own    *load
	joined []*load // entered once each, own included
	newOwn func() *load
}

// enter makes the waiter count in l, once.
func (w *waiter) enter(l *load) bool {
	for _, j := range w.joined {
		if j == l {
			return true
		}
	}
	if !l.enter() {
		return false
	}
	w.joined = append(w.joined, l)
	return true
}

// add appends id to the waiter's own load.
func (w *waiter) add(id int64) *call {
	if w.own == nil {
		w.own = w.newOwn()
		w.joined = append(w.joined, w.own)
	}
	w.own.calls = append(w.own.calls, call{load: w.own, id: id})
	return &w.own.calls[len(w.own.calls)-1]
}

// wait returns when all loads are done, with ctx's error when that ends first, or when
// enough says so, which is asked once, after patience. Zero or less means never.
func (w *waiter) wait(ctx context.Context, patience time.Duration, enough func() bool) error {
	var impatient <-chan time.Time
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		impatient = timer.C
	}
	for _, l := range w.joined {
		for waits := true; waits; {
			select {
			case <-l.done:
				waits = false
			case <-ctx.Done():
				return ctx.Err()
			case <-impatient:
				if enough() {
					return nil
				}
			}
		}
	}
	return nil
}

// leave takes the waiter out of its loads.
func (w *waiter) leave() {
	for _, l := range w.joined {
		l.leave()
	}
}
