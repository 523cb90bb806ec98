package users

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"pinion/internal/stats"
)

// source is what a source is called in errors and metrics, and its counters.
type source struct {
	name                 string
	ok, failed, canceled *stats.Counter
	duration             *stats.Histogram
}

func newSources(reg *stats.Registry) (sql, attributes, members source) {
	requests := reg.Counter("source_requests_total",
		"Calls of a source, by result: ok, error, or canceled because the caller left or had too little time.", "source", "result")
	duration := reg.Histogram("source_duration_seconds",
		"Time a source took to answer or to fail.",
		[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}, "source")
	resolve := func(name string) source {
		return source{
			name:     name,
			ok:       requests.With(name, "ok"),
			failed:   requests.With(name, "error"),
			canceled: requests.With(name, "canceled"),
			duration: duration.With(name),
		}
	}
	return resolve("sql"), resolve("attributes"), resolve("members")
}

// errGone is what a call that never returned leaves behind: its goroutine ended in it.
var errGone = errors.New("source ended the goroutine that called it")

// ask calls a source once, counts the call and sorts its errors: ErrNotFound and the
// error of ctx pass unchanged, all others become ErrUnavailable. A panic is one of
// those others.
func ask[T any](ctx context.Context, src *source, shard uint64, f func(context.Context) (T, error)) (v T, err error) {
	start := time.Now()
	err = errGone
	defer func() {
		if p := recover(); p != nil {
			err = panicError(p)
		}
		src.duration.Observe(shard, time.Since(start))
		switch cause := context.Cause(ctx); {
		case err == nil || errors.Is(err, ErrNotFound):
			src.ok.Add(shard, 1)
		case cause == nil:
			src.failed.Add(shard, 1)
			err = unavailable(src.name, err)
		case errors.Is(cause, errLoadTimeout):
			src.failed.Add(shard, 1)
			err = unavailable(src.name, errLoadTimeout)
		case errors.Is(cause, context.DeadlineExceeded):
			// A limit of ours, which the source did not meet.
			src.failed.Add(shard, 1)
			err = ctx.Err()
		default:
			src.canceled.Add(shard, 1)
			err = ctx.Err()
		}
	}()
	return f(ctx)
}

// panicError keeps the stack: an error that only named the value could not be traced.
func panicError(value any) error { return fmt.Errorf("panic: %v\n%s", value, debug.Stack()) }

// unavailable wraps a source's error. A context error in it is never the caller's: a
// caller must not take the source's own timeout for its own.
func unavailable(name string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %s: %v", ErrUnavailable, name, err) //nolint:errorlint // see above
	}
	return fmt.Errorf("%w: %s: %w", ErrUnavailable, name, err)
}
