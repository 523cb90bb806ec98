package users

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"pinion/internal/stats"
)

// source is what a source is called in errors and metrics, its counters and its guard.
type source struct {
	name                          string
	guard                         *guard
	ok, failed, canceled, refused *stats.Counter
	duration                      *stats.Histogram

	// tolerant keeps errors, but not timeouts, from the breaker.
	tolerant bool
}

// writes is src for calls that store something: a source that is full, or read-only, or
// that resolves a deadlock, can still be read.
func (src *source) writes() *source {
	w := *src
	w.tolerant = true
	return &w
}

// newSources makes one source for each name.
func newSources(reg *stats.Registry, limits map[string]SourceLimits) map[string]*source {
	requests := reg.Counter("source_requests_total",
		"Calls of a source, by result: ok, error, canceled because the caller left or had too little time, or refused without asking the source.",
		"source", "result")
	duration := reg.Histogram("source_duration_seconds",
		"Time a source took to answer or to fail.",
		[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}, "source")
	state := reg.Gauge("source_breaker_state",
		"Circuit breaker of a source: 0 closed, 1 half-open (one call tries whether it is back), 2 open (calls are refused).", "source")
	sources := make(map[string]*source, len(limits))
	for name, limit := range limits {
		sources[name] = &source{
			name:     name,
			guard:    newGuard(name, limit, state),
			ok:       requests.With(name, "ok"),
			failed:   requests.With(name, "error"),
			canceled: requests.With(name, "canceled"),
			refused:  requests.With(name, "refused"),
			duration: duration.With(name),
		}
	}
	return sources
}

// Failures that a second try would only repeat.
var (
	// errGone is what a call that never returned leaves behind: its goroutine ended in it.
	errGone  = errors.New("source ended the goroutine that called it")
	errPanic = errors.New("panic")
	// errSourceTimeout is the cause of the end of a call's context.
	errSourceTimeout = errors.New("the source did not answer in time")
)

// ask calls a source once, counts the call and sorts its errors: ErrNotFound,
// ErrKeyReused and the error of ctx pass unchanged, all others become ErrUnavailable. A
// panic is one of those others.
func ask[T any](ctx context.Context, src *source, shard uint64, f func(context.Context) (T, error)) (v T, err error) {
	report, err := src.guard.enter(ctx)
	if err != nil {
		return v, src.refuse(ctx, shard, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, src.guard.limit(), errSourceTimeout)
	start := time.Now()
	err = errGone
	defer func() {
		if p := recover(); p != nil {
			err = panicError(p)
		}
		src.duration.Observe(shard, time.Since(start))
		var outcome error
		err, outcome = src.settle(ctx, shard, err)
		src.guard.leave()
		report(outcome)
		cancel()
	}()
	return f(ctx)
}

// read is ask for calls that may be repeated: one that failed at once is tried a second
// time, if the budget allows. After a timeout that would only add to the load.
func read[T any](ctx context.Context, src *source, shard uint64, f func(context.Context) (T, error)) (v T, err error) {
	src.guard.retries.earn()
	v, err = ask(ctx, src, shard, f)
	if err == nil || !worthRetry(err) || src.guard.open() || !src.guard.retries.spend() || !pause(ctx) {
		return v, err
	}
	return ask(ctx, src, shard, f)
}

func worthRetry(err error) bool {
	if !errors.Is(err, ErrUnavailable) {
		return false
	}
	for _, final := range []error{ErrBreakerOpen, ErrOverloaded, errSourceTimeout, errLoadTimeout, errGone, errPanic} {
		if errors.Is(err, final) {
			return false
		}
	}
	return true
}

// refuse is the error of a call that was not let in.
func (src *source) refuse(ctx context.Context, shard uint64, cause error) error {
	switch {
	case errors.Is(cause, ErrBreakerOpen):
	case errors.Is(cause, context.DeadlineExceeded), errors.Is(cause, errLoadTimeout), errors.Is(cause, errSourceTimeout):
		cause = ErrOverloaded
	default:
		src.canceled.Add(shard, 1)
		return ctx.Err()
	}
	src.refused.Add(shard, 1)
	return unavailable(src.name, cause)
}

// settle counts how a call ended under ctx, and returns its error, and what of it the
// breaker is to know.
func (src *source) settle(ctx context.Context, shard uint64, err error) (sorted, outcome error) {
	if err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrKeyReused) {
		src.ok.Add(shard, 1)
		return err, nil
	}
	cause := context.Cause(ctx)
	ours := cause == nil || errors.Is(cause, errSourceTimeout) || errors.Is(cause, errLoadTimeout)
	// Any deadline but the caller's own is one that the source did not meet.
	if ours || errors.Is(cause, context.DeadlineExceeded) {
		src.failed.Add(shard, 1)
		outcome = ErrUnavailable
		if src.tolerant && !errors.Is(cause, errSourceTimeout) {
			outcome = errExcluded
		}
	} else {
		src.canceled.Add(shard, 1)
		outcome = errExcluded
	}
	switch {
	case errors.Is(err, ErrUnknownOutcome):
		return unknownOutcome(src.name, err), outcome
	case cause == nil:
		return unavailable(src.name, err), outcome
	case ours:
		return unavailable(src.name, cause), outcome
	default:
		return ctx.Err(), outcome
	}
}

// panicError keeps the stack: an error that only named the value could not be traced.
func panicError(value any) error { return fmt.Errorf("%w: %v\n%s", errPanic, value, debug.Stack()) }

// unavailable wraps a source's error. A context error in it is never the caller's: a
// caller must not take the source's own timeout for its own.
func unavailable(name string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %s: %v", ErrUnavailable, name, err) //nolint:errorlint // see above
	}
	return fmt.Errorf("%w: %s: %w", ErrUnavailable, name, err)
}

// unknownOutcome is unavailable for a write that may have been stored.
func unknownOutcome(name string, err error) error {
	return fmt.Errorf("%w: %w: %s: %v", ErrUnavailable, ErrUnknownOutcome, name, err) //nolint:errorlint // as in unavailable
}
