package users

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"pinion/internal/stats"
)

// errAnnounceTimeout is the cause of the end of an announcement's context.
var errAnnounceTimeout = errors.New("other caches did not confirm in time")

// announcer tells the other caches of the same users what was written here.
type announcer struct {
	call    func(ctx context.Context, id int64) error // nil: there are no others
	timeout time.Duration
	log     *slog.Logger
	failed  *stats.Counter
	failing atomic.Bool // the last call failed, and the log was told
}

// tell returns when the other caches have forgotten id, or an ErrUnknownOutcome when that
// has failed: they may go on answering the older user until their entry ends, so the
// write must not be reported as done. It outlives the caller of the write: a client that
// leaves must not keep the others from hearing of what is stored already.
func (a *announcer) tell(ctx context.Context, id int64) error {
	if a.call == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), a.timeout, errAnnounceTimeout)
	defer cancel()
	err := a.call(ctx, id)
	if err == nil {
		if a.failing.Load() && a.failing.CompareAndSwap(true, false) {
			a.log.Info("writes are announced to the other caches again", "failed", a.failed.Value())
		}
		return nil
	}
	a.failed.Add(0, 1)
	if a.failing.CompareAndSwap(false, true) {
		a.log.Warn("a write could not be announced: other caches may answer the older user until their entry ends",
			"id", id, "error", err)
	}
	return unknownOutcome("other caches", err)
}

// sharedLags is announced in place of an id, to other Services of this kind: there is a
// removal that the shared cache has not heard of, so none may read from it.
const sharedLags = -1

// Forget removes id from the L1 cache and voids the loads of it that are in progress:
// their waiters still get their answer, but nobody who asks from now on. It is for the
// writes of others, as Config.Announce tells them: once it has returned, no read that
// starts here answers what was stored before the call. It never waits for a source.
//
// A number below zero that was announced is no id, and is to be passed on all the same.
func (s *Service) Forget(id int64) {
	if id == sharedLags {
		if s.shared != nil {
			s.shared.unsettle()
		}
		return
	}
	s.flights.void(id)
}
