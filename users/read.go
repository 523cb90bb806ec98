package users

import "context"

// CachedUser answers one id from the L1 cache, or nil when it must be loaded. It
// never blocks and never allocates. shard is as in Batch.
func (s *Service) CachedUser(shard uint64, id int64) *Fragment {
	f, ok := s.cache.get(id)
	switch {
	case !ok:
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
	for i, id := range b.IDs {
		f, ok := s.cache.get(id)
		if !ok {
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
// others began for the same ids and asks the sources once for the rest.
//
// It returns the error of ctx when that ends first, and ErrUnavailable when rows could
// not be read; some fragments may then be nil.
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
	w := waiter{newOwn: func() *load { return s.newLoad(b.Shard, open) }}
	calls := make([]*call, len(b.IDs))
	for i, id := range b.IDs {
		if b.Fragments[i] == nil {
			b.Fragments[i], calls[i] = s.flights.join(id, &w)
		}
	}
	if w.own != nil {
		s.start(w.own)
	}
	if err := w.wait(ctx); err != nil {
		return err
	}
	for i, c := range calls {
		if c == nil {
			continue
		}
		if c.load.err != nil {
			return c.load.err
		}
		b.Fragments[i] = c.fragment
	}
	return nil
}

// newLoad makes a load for up to size ids with its first waiter. It carries neither
// the values nor the deadline of any caller.
func (s *Service) newLoad(shard uint64, size int) *load {
	ctx, cancel := context.WithCancelCause(s.base)
	l := &load{ctx: ctx, cancel: cancel, shard: shard, calls: make([]call, 0, size), done: make(chan struct{})}
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
	// Stands if a source ends this goroutine.
	l.err = unavailable("load", errGone)
	defer s.flights.land(l)
	defer func() {
		if p := recover(); p != nil {
			l.err = unavailable("load", panicError(p))
		}
	}()
	ctx, cancel := context.WithTimeoutCause(l.ctx, s.loadTimeout, errLoadTimeout)
	defer cancel()
	err := s.fill(ctx, l)
	if l.ctx.Err() != nil {
		// Cut short: what looks like a failed source is none, so nothing of it may be
		// kept, and the context error is not that of a caller.
		err = unavailable("load", context.Cause(l.ctx))
	}
	l.err = err
}

// Active answers the users of q, newest login first: it sets b's IDs and Fragments.
// Users that vanished between the query and the load are left out. Errors are as in
// Load.
func (s *Service) Active(ctx context.Context, q ActiveQuery, b *Batch) error {
	ids, err := ask(ctx, &s.sqlSource, b.Shard,
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
	return ask(ctx, &s.sqlSource, 0,
		func(ctx context.Context) (string, error) { return s.rows.Address(ctx, id) })
}
