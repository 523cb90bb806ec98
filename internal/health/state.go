// Package health knows whether this process is alive and should get requests. The
// public /ready and the one of the private port ask the same State.
//
// A State goes from starting to ready to draining, and never back. While it is
// ready, it also asks the database, at most once a second however often it is
// probed, so that probes are never a load.
package health

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of Config.
const (
	DefaultInterval = time.Second
	// DefaultTimeout is well below the second that a Kubernetes probe waits by default,
	// so that a probe gets a reason and not a timeout.
	DefaultTimeout = 500 * time.Millisecond
)

// Reasons of a NotReadyError.
const (
	ReasonStarting    = "starting"
	ReasonDraining    = "draining"
	ReasonUnreachable = "database unreachable"
	ReasonUnfinished  = "check not finished" // the context of the probe ended first
)

// NotReadyError says why no requests should come here.
type NotReadyError struct {
	Reason string // one of the constants above; safe to show to anybody
	Cause  error  // what the database or the context said, for the log only; may be nil
}

// Error is the reason alone, so that it can be shown to anybody.
func (e *NotReadyError) Error() string { return e.Reason }

// Unwrap is the cause.
func (e *NotReadyError) Unwrap() error { return e.Cause }

// Config is what a State needs. The zero value is a State that asks no database.
type Config struct {
	// Ping reports whether requests can be served; nil: always. It must return soon
	// after its context ends.
	Ping func(context.Context) error
	// Interval is the least time from one Ping to the next; 0 means DefaultInterval.
	Interval time.Duration
	// Timeout is how long a Ping may take; 0 means DefaultTimeout.
	Timeout time.Duration
	// Log gets a line when the answer of Ping changes; nil means slog.Default().
	Log *slog.Logger
}

type phase = int32

const (
	starting phase = iota
	ready
	draining
)

// State is the readiness of the process. It is safe for concurrent use. Make it with
// New.
type State struct {
	cfg   Config
	phase atomic.Int32

	mu     sync.Mutex
	last   *NotReadyError // what the last finished Ping said; nil: all is well
	asked  time.Time      // when the last Ping began
	flight *flight        // the Ping that is running, if any
}

// flight is one running Ping, shared by all who wait for it.
type flight struct {
	ctx  context.Context // ends at the timeout, or after done is closed
	done chan struct{}
}

// New returns a State that is starting.
func New(cfg Config) *State {
	if cfg.Interval <= 0 {
		cfg.Interval = DefaultInterval
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &State{cfg: cfg}
}

// SetReady ends the starting phase. It does nothing once the State is draining: a
// signal that came during the start counts.
func (s *State) SetReady() { s.phase.CompareAndSwap(starting, ready) }

// SetDraining says that the process is about to end. There is no way back.
func (s *State) SetDraining() { s.phase.Store(draining) }

// Check returns nil if requests may come, else a *NotReadyError. It may wait for the
// database, as long as ctx and Config.Timeout allow. With a cached answer it neither
// waits nor allocates.
func (s *State) Check(ctx context.Context) error {
	if err := s.checkPhase(); err != nil {
		return err
	}
	if s.cfg.Ping == nil {
		return nil
	}
	err := s.reach(ctx)
	// Draining may have begun meanwhile, and is the better reason.
	if err := s.checkPhase(); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	return nil // not err: that is a nil of a concrete type
}

func (s *State) checkPhase() error {
	switch s.phase.Load() {
	case starting:
		return &NotReadyError{Reason: ReasonStarting}
	case draining:
		return &NotReadyError{Reason: ReasonDraining}
	}
	return nil
}

func (s *State) reach(ctx context.Context) *NotReadyError {
	s.mu.Lock()
	f := s.flight
	if f == nil {
		if !s.asked.IsZero() && time.Since(s.asked) < s.cfg.Interval {
			defer s.mu.Unlock()
			return s.last
		}
		f = s.ping()
	}
	s.mu.Unlock()

	select {
	case <-f.done:
	case <-ctx.Done():
		return &NotReadyError{Reason: ReasonUnfinished, Cause: ctx.Err()}
	case <-f.ctx.Done():
		select {
		case <-f.done: // its context ended because it is done
		default:
			return &NotReadyError{Reason: ReasonUnreachable, Cause: f.ctx.Err()}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// ping starts a Ping, under a context of its own: the probe that happens to come
// first must not fail the others by leaving. It is called with the lock held.
func (s *State) ping() *flight {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Timeout)
	f := &flight{ctx: ctx, done: make(chan struct{})}
	s.flight, s.asked = f, time.Now()
	go func() {
		defer cancel()
		err := s.cfg.Ping(ctx)

		s.mu.Lock()
		was := s.last
		s.last, s.flight = nil, nil
		if err != nil {
			s.last = &NotReadyError{Reason: ReasonUnreachable, Cause: err}
		}
		s.mu.Unlock()
		close(f.done)

		switch {
		case err != nil && was == nil:
			s.cfg.Log.Warn("not ready: "+ReasonUnreachable, "error", err)
		case err == nil && was != nil:
			s.cfg.Log.Info("ready again: database reachable")
		}
	}()
	return f
}
