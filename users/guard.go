package users

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"pinion/internal/stats"
)

// SourceLimits bounds the calls of one source.
type SourceLimits struct {
	// InFlight is how many calls may be out at the same time; callers on top of that
	// wait for as long as they have time. It should not be much more than the
	// connections that the source has. Zero or less means DefaultInFlight.
	InFlight int
	// Timeout ends a call, whatever time its caller has. Zero or less means the default
	// of the source: DefaultSQLTimeout, DefaultPartTimeout or DefaultSharedTimeout.
	Timeout time.Duration
}

// Limits are those of all sources.
type Limits struct {
	SQL, Attributes, Members, Shared SourceLimits
}

// Defaults of SourceLimits.
const (
	DefaultInFlight = 32
	// DefaultSQLTimeout is shorter than DefaultLoadTimeout: a database that hangs then
	// costs a call and not the load, which may still have an old answer.
	DefaultSQLTimeout = 3 * time.Second
	// DefaultPartTimeout is for attributes and members: an answer does well without
	// them, and badly when it is late.
	DefaultPartTimeout = time.Second
	// DefaultSharedTimeout is for the shared cache. A cache that takes longer than the
	// sources is none.
	DefaultSharedTimeout = 250 * time.Millisecond
)

func (l *SourceLimits) setDefaults(timeout time.Duration) {
	if l.InFlight <= 0 {
		l.InFlight = DefaultInFlight
	}
	if l.Timeout <= 0 {
		l.Timeout = timeout
	}
}

// The breaker of a source opens after tripRow failures in a row, or when half of at least
// tripCalls calls of the last tripWindow have failed. While it is open, calls are refused.
// After openTime one call is let through, for at most probeTimeout, and decides. A source
// that is back is so found within two seconds, even if the call before it hung.
const (
	tripRow      = 5
	tripCalls    = 20
	tripWindow   = 30 * time.Second
	tripBucket   = 3 * time.Second
	openTime     = 500 * time.Millisecond
	probeTimeout = time.Second
)

// errExcluded tells the breaker of a call that says nothing about the source.
var errExcluded = errors.New("the caller left")

// guard stands before a source: it limits the calls in flight and their time, and refuses
// them while the source is known to fail.
type guard struct {
	slots   chan struct{}
	timeout time.Duration
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	probing atomic.Bool
	retries budget
}

func newGuard(name string, limits SourceLimits, state *stats.GaugeVec) *guard {
	g := &guard{slots: make(chan struct{}, limits.InFlight), timeout: limits.Timeout}
	g.retries.tenths.Store(tenths)
	g.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:         name,
		MaxRequests:  1,
		Interval:     tripWindow,
		BucketPeriod: tripBucket,
		Timeout:      openTime,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.ConsecutiveFailures >= tripRow || c.Requests >= tripCalls && 2*c.TotalFailures >= c.Requests
		},
		OnStateChange: func(_ string, _, to gobreaker.State) { g.probing.Store(to == gobreaker.StateHalfOpen) },
		IsExcluded:    func(err error) bool { return errors.Is(err, errExcluded) },
	})
	state.Func(func() float64 { return float64(g.breaker.State()) }, name)
	return g
}

// open reports whether calls are refused now.
func (g *guard) open() bool { return g.breaker.State() == gobreaker.StateOpen }

// enter waits for a slot and asks the breaker. The caller calls done with the outcome, and
// leave after it. The error is ErrBreakerOpen, or the cause of ctx's end.
func (g *guard) enter(ctx context.Context) (done func(error), err error) {
	select {
	case g.slots <- struct{}{}:
	default:
		if g.open() {
			return nil, ErrBreakerOpen
		}
		select {
		case g.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	done, err = g.breaker.Allow()
	if err != nil {
		g.leave()
		return nil, ErrBreakerOpen
	}
	return done, nil
}

func (g *guard) leave() { <-g.slots }

// limit is how long the call that was just let in may take.
func (g *guard) limit() time.Duration {
	if g.probing.Load() {
		return min(g.timeout, probeTimeout)
	}
	return g.timeout
}

// A retry waits between retryDelay and twice that: what failed together should not come
// back together.
const retryDelay = 5 * time.Millisecond

// budget bounds retries to a tenth of the calls, and to maxRetries in a row after a long
// time without any: when all calls fail, retries must not double the load.
type budget struct{ tenths atomic.Int64 }

const (
	tenths     = 10 // of a call, which one retry costs
	maxRetries = 10
)

func (b *budget) earn() {
	if b.tenths.Load() < maxRetries*tenths {
		b.tenths.Add(1)
	}
}

func (b *budget) spend() bool {
	for {
		n := b.tenths.Load()
		if n < tenths {
			return false
		}
		if b.tenths.CompareAndSwap(n, n-tenths) {
			return true
		}
	}
}

// pause waits before a retry, and reports whether there is time for one.
func pause(ctx context.Context) bool {
	d := retryDelay + rand.N(retryDelay)
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
