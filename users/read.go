package users

import (
	"context"
	"time"
)

// CachedUser answers one id from the L1 cache, or nil when it must be loaded. It
// never blocks and never allocates. shard is as in Batch.
func (s *Service) CachedUser(shard uint64, id int64) *Fragment {
	f := s.cache.reader().get(id)
	switch {
	case f == nil:
		s.misses.Add(shard, 1)
		return nil
	case f.Missing():
		s.negatives.Add(shard, 1)
	default:
		s.hits.Add(shard, 1)
	}
	return f
}

// Cached answers what it can of b from the L1 cache and reports whether that was all.
// It forgets what the batch held before. It never blocks, and does not allocate once b
// has held as many ids.
func (s *Service) Cached(b *Batch) bool {
	b.fit()
	var hits, negatives uint64
	cache := s.cache.reader()
	for i, id := range b.IDs {
		f := cache.get(id)
		if f == nil {
			continue
		}
		b.Fragments[i] = f
		if f.Missing() {
			negatives++
		} else {
			hits++
		}
	}
	misses := uint64(len(b.IDs)) - hits - negatives
	if hits > 0 {
		s.hits.Add(b.Shard, hits)
	}
	if negatives > 0 {
		s.negatives.Add(b.Shard, negatives)
	}
	if misses > 0 {
		s.misses.Add(b.Shard, misses)
	}
	return misses == 0
}

// Load answers the ids of b whose fragment is nil; it may block. It joins loads that
// others began for the same ids and asks the shared cache, and then the sources, once for
// the rest.
//
// When rows cannot be read, users that were in L1 not long ago are answered as they were
// then, marked DegradedStale. If ctx has a deadline and all of them were, that happens
// before it has passed.
//
// It returns the error of ctx when that ends first, and ErrUnavailable when rows could
// not be read and there is no older answer; some fragments may then be nil.
func (s *Service) Load(ctx context.Context, b *Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(b.Fragments) != len(b.IDs) {
		b.fit()
	}
	open := 0
	for _, f := range b.Fragments {
		if f == nil {
			open++
		}
	}
	if open == 0 {
		return nil
	}
	left := timeLeft(ctx)
	hasty := left > 0 && left < hasteBelow
	w := waiter{hasty: hasty, newOwn: func() *load { return s.newLoad(b.Shard, open, left, hasty) }}
	calls := make([]*call, len(b.IDs))
	patience := left / patientShare * oldShare
	for i, id := range b.IDs {
		if b.Fragments[i] != nil {
			continue
		}
		b.Fragments[i], calls[i] = s.flights.join(id, &w)
		if patience > 0 && calls[i] != nil && s.cache.old(id) == nil {
			patience = 0 // there is nothing to fall back to
		}
	}
	if w.own != nil {
		s.start(w.own)
	}
	// The older answers that end the wait may be gone when it ends: a write removes them.
	defer w.leave()
	if err := w.wait(ctx, patience, func() bool { return s.answerOld(b, calls) }); err != nil {
		return err
	}
	for i, c := range calls {
		if c == nil || b.Fragments[i] != nil {
			continue
		}
		f := c.fragment
		if f == nil {
			f = s.old(c.id)
		}
		if f == nil {
			return c.load.err
		}
		b.Fragments[i] = f
	}
	return nil
}

// hasteBelow is a time in which a source that is well may not have answered. Who has no
// more than that must not decide what others get.
const hasteBelow = 250 * time.Millisecond

// patientShare is the part of its time that a caller gives to what it may have to do
// without, out of ten. Only after oldShare it takes what is past its time: a new answer
// that lacks a part is better, and comes in between.
const (
	patientShare = 8
	oldShare     = 9
)

// timeLeft is how long a caller waits for what it can do without; 0: for ever.
func timeLeft(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(1, time.Until(deadline)*patientShare/10)
}

// answerOld answers calls that are not done yet with what L1 has kept, if it has all.
func (s *Service) answerOld(b *Batch, calls []*call) bool {
	found := make([]*Fragment, len(calls))
	for i, c := range calls {
		if c == nil {
			continue
		}
		select {
		case <-c.load.done:
			continue
		default:
		}
		if found[i] = s.old(c.id); found[i] == nil {
			return false
		}
	}
	for i, f := range found {
		if f != nil {
			b.Fragments[i] = f
		}
	}
	return true
}

// old returns what L1 has kept of id for when nothing better can be had, or nil. Writes
// remove it as they remove what is fresh.
func (s *Service) old(id int64) *Fragment {
	if f, ok := s.cache.get(id); ok {
		return f // has come meanwhile
	}
	f := s.cache.old(id)
	if f == nil {
		return nil
	}
	s.stales.Add(0, 1)
	return f.stale()
}

// newLoad makes a load for up to size ids with its first waiter, which has so much time
// left for what it can do without. It carries neither the values nor the deadline of any
// caller.
func (s *Service) newLoad(shard uint64, size int, left time.Duration, hasty bool) *load {
	ctx, cancel := context.WithCancelCause(s.base)
	l := &load{ctx: ctx, cancel: cancel, shard: shard, calls: make([]call, 0, size), done: make(chan struct{}), patience: s.loadTimeout, hasty: hasty}
	if left > 0 {
		l.patience = min(left, s.loadTimeout)
	}
	l.began = s.cache.clock.NowNano()
	l.waiters.Store(1)
	return l
}

// start runs l on a goroutine of its own.
func (s *Service) start(l *load) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		l.err = unavailable("load", errClosed)
		s.flights.land(l)
		return
	}
	s.loads.Go(func() { s.run(l) })
}

func (s *Service) run(l *load) {
	var fills []SharedEntry
	epoch := s.shared.usable()
	defer func() {
		if p := recover(); p != nil {
			l.err = unavailable("load", panicError(p))
		}
		s.flights.land(l)
		s.shared.fill(epoch, fills)
	}()
	ctx, cancel := context.WithTimeoutCause(l.ctx, s.loadTimeout, errLoadTimeout)
	defer cancel()
	err := s.fill(ctx, l, epoch)
	if l.ctx.Err() != nil {
		// Cut short: what looks like a failed source is none, so nothing of it may be
		// kept, and the context error is not that of a caller.
		err = unavailable("load", context.Cause(l.ctx))
		for i := range l.calls {
			l.calls[i].fragment = nil
		}
	}
	l.err = err
	fills = l.fills()
}

// Active answers the users of q, newest login first: it sets b's IDs and Fragments.
// Users that vanished between the query and the load are left out. Errors are as in
// Load.
func (s *Service) Active(ctx context.Context, q ActiveQuery, b *Batch) error {
	ids, err := read(ctx, s.sqlSource, b.Shard,
		func(ctx context.Context) ([]int64, error) { return s.rows.ActiveIDs(ctx, q) })
	if err != nil {
		return err
	}
	b.IDs = append(b.IDs[:0], ids...)
	if !s.Cached(b) {
		if err := s.Load(ctx, b); err != nil {
			return err
		}
	}
	n := 0
	for i, f := range b.Fragments {
		if !f.Missing() {
			b.IDs[n], b.Fragments[n] = b.IDs[i], f
			n++
		}
	}
	clear(b.Fragments[n:])
	b.IDs, b.Fragments = b.IDs[:n], b.Fragments[:n]
	return nil
}

// Address answers the address of a user, empty when none was given, ErrNotFound, or
// ErrUnavailable. It is not cached.
func (s *Service) Address(ctx context.Context, id int64) (string, error) {
	return read(ctx, s.sqlSource, 0,
		func(ctx context.Context) (string, error) { return s.rows.Address(ctx, id) })
}
