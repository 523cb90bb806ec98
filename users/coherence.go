package users

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// errNoVoidLog stands for a removal that cannot be logged.
var errNoVoidLog = errors.New("there is no log of removals")

const (
	// keepInterval is how often the void log is looked at in good times.
	keepInterval = time.Second
	// mendInterval is how often it is looked at while removals are owed.
	mendInterval = 200 * time.Millisecond
	// maxVoids is how many entries of the void log are read at once.
	maxVoids = 256
	// voidsAtOnce is how many of them are made up for at the same time.
	voidsAtOnce = 32
)

// Flush empties the L1 cache and voids all loads in progress: their waiters still get
// their answer, but nobody who asks from now on.
func (s *Service) Flush() { s.flights.flush() }

// SetCoherent says whether every removal that the shared cache pushes reaches Forget from
// now on. A Service with a shared cache begins without that.
//
// False, which takes effect before SetCoherent returns, empties the L1 cache, ends the use
// of the shared cache, and has entries of L1 live for less than a second. True makes up
// for the removals in the void log, empties L1 once more, and only then goes back to
// normal, all in the background. Saying what was said before does nothing. It is safe for
// concurrent use, but calls must come in the order of what they tell.
func (s *Service) SetCoherent(coherent bool) {
	c := s.shared
	if c == nil {
		if s.cache.brief.Swap(!coherent) != !coherent {
			s.Flush()
		}
		return
	}
	c.mu.Lock()
	changed := c.tracking != coherent
	c.tracking = coherent
	if changed {
		c.turns++
	}
	if changed && !coherent {
		c.coherent = false
		c.suspend()
		// Before the flush: what lands after it must not live long.
		s.cache.brief.Store(true)
	}
	c.mu.Unlock()
	switch {
	case !changed:
	case coherent:
		c.log.Info("removals are pushed by the shared cache")
		c.poke()
	default:
		c.log.Warn("removals are not pushed by the shared cache: it is not used, and L1 entries live for less than a second")
		s.Flush()
	}
}

// poke has the keeper look now.
func (c *l2) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// void has the shared cache drop id, whose write has reached the sources, and push the
// removal to every instance. If that fails, the removal is written to the void log, and
// this process does without the shared cache until somebody has made up for it; sent is
// then false. An error says that the log could not be written either: others may answer
// the older user.
func (c *l2) void(ctx context.Context, id int64) (sent bool, err error) {
	ctx = context.WithoutCancel(ctx) // the write is done
	limited, cancel := context.WithTimeoutCause(ctx, 2*c.source.guard.timeout, errSourceTimeout)
	defer cancel()
	err = errGone // stands if the cache ends this goroutine
	defer func() {
		if sent = err == nil; !sent {
			err = c.note(ctx, id)
		}
	}()
	err = c.send(limited, id)
	return true, err
}

// unsettle ends the use of the shared cache until what is in the void log is made up for.
func (c *l2) unsettle() {
	c.mu.Lock()
	c.suspend()
	c.failures++
	c.mu.Unlock()
	c.poke()
}

// note writes a removal that could not be sent into the void log.
func (c *l2) note(ctx context.Context, id int64) error {
	// From here on no load of this process reads the older user from the shared cache.
	c.mu.Lock()
	c.suspend()
	c.logging++
	c.mu.Unlock()
	err := errNoVoidLog
	defer func() {
		c.mu.Lock()
		c.logging--
		c.failures++
		if err != nil {
			c.owed[id] = struct{}{}
		}
		c.mu.Unlock()
		c.poke()
	}()
	if c.voids != nil {
		ctx, cancel := context.WithTimeoutCause(ctx, c.logged.guard.timeout, errSourceTimeout)
		defer cancel()
		err = errGone
		_, err = ask(ctx, c.logged, 0, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, c.voids.AddVoid(ctx, id)
		})
	}
	if err != nil {
		return unknownOutcome("removal", err)
	}
	return nil
}

// suspend ends the use of the shared cache until the keeper has made up for what is owed.
// The caller holds mu.
func (c *l2) suspend() {
	c.settled = false
	c.epoch.Store(0)
}

// send asks the shared cache to drop id. Doing so twice does no harm.
func (c *l2) send(ctx context.Context, id int64) error {
	_, err := read(ctx, c.writes, 0, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.cache.Void(ctx, id)
	})
	return err
}

// keep makes up for removals that are owed, here or in the void log, until the service is
// closed. While tracking is lost there is nothing it could do.
func (s *Service) keep() {
	defer func() {
		if s.base.Err() == nil { // a source has ended this goroutine
			s.loads.Go(s.keep)
		}
	}()
	timer := time.NewTimer(keepInterval)
	defer timer.Stop()
	for {
		select {
		case <-s.base.Done():
			return
		case <-s.shared.wake:
		case <-timer.C:
		}
		if s.mend() {
			timer.Reset(keepInterval)
		} else {
			timer.Reset(mendInterval)
		}
	}
}

// mend sends the removals that are owed. If none is left, and removals are pushed to us,
// the shared cache is used again. It reports whether there is no hurry to call it again.
func (s *Service) mend() bool {
	c := s.shared
	c.mu.Lock()
	tracking, turns, failures := c.tracking, c.turns, c.failures
	idle := c.logging == 0
	owed := make([]int64, 0, len(c.owed))
	for id := range c.owed {
		owed = append(owed, id)
	}
	c.mu.Unlock()
	if !tracking {
		return true
	}
	for _, id := range owed {
		if !s.makeUp(id) {
			return false
		}
		c.mu.Lock()
		delete(c.owed, id)
		c.mu.Unlock()
	}
	if !s.drain() || !idle {
		return false
	}

	c.mu.Lock()
	same := func() bool { return c.turns == turns && c.failures == failures && c.logging == 0 && len(c.owed) == 0 }
	if same() && !c.coherent {
		c.mu.Unlock()
		// What came in while removals were not pushed to us.
		s.Flush()
		c.mu.Lock()
	}
	defer c.mu.Unlock()
	if !same() {
		return false
	}
	c.coherent, c.settled = true, true
	s.cache.brief.Store(false)
	if c.epoch.Load() == 0 {
		c.epochs++
		c.epoch.Store(c.epochs)
		c.log.Info("the shared cache is in use")
	}
	return true
}

// drain sends the removals of the void log, and reports whether it is empty.
func (s *Service) drain() bool {
	c := s.shared
	if c.voids == nil {
		return true
	}
	for {
		voids, err := ask(s.base, c.logged, 0, func(ctx context.Context) ([]Void, error) {
			return c.voids.Voids(ctx, maxVoids)
		})
		if err != nil {
			// Nobody knows what is owed: things stay as they are. So the shared cache
			// answers while the database is down, but not when it was lost before that.
			return c.isSettled()
		}
		if len(voids) == 0 {
			return true
		}
		seqs := s.makeUpAll(voids)
		if len(seqs) > 0 {
			_, err = ask(s.base, c.logged, 0, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, c.voids.DropVoids(ctx, seqs)
			})
		}
		if err != nil || len(seqs) < len(voids) {
			return false
		}
	}
}

// makeUpAll sends the removals of voids, many at the same time, and returns the entries
// that are made up for.
func (s *Service) makeUpAll(voids []Void) (seqs []int64) {
	byID := make(map[int64][]int64, len(voids))
	for _, v := range voids {
		byID[v.ID] = append(byID[v.ID], v.Seq)
	}
	var (
		mu     sync.Mutex
		wg     sync.WaitGroup
		failed atomic.Bool
		slots  = make(chan struct{}, voidsAtOnce)
	)
	for id, entries := range byID {
		slots <- struct{}{}
		if failed.Load() {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if !s.makeUp(id) {
				failed.Store(true)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			seqs = append(seqs, entries...)
		})
	}
	wg.Wait()
	return seqs
}

func (c *l2) isSettled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settled
}

// makeUp sends a removal that is owed, and forgets the id here. If it cannot be sent, the
// shared cache may hold what is older, and is not used.
func (s *Service) makeUp(id int64) bool {
	c := s.shared
	err := c.send(s.base, id)
	if err != nil {
		c.mu.Lock()
		c.suspend()
		c.mu.Unlock()
	}
	s.Forget(id)
	return err == nil
}
