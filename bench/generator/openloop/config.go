package openloop

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrConfig is wrapped by every error about a Config that makes no sense.
var ErrConfig = errors.New("bad configuration")

// mostRate is in requests a second for each thread, each three system calls: none comes near it.
const mostRate = 1e6

// Shape is how the requests of an open loop are spread over time.
type Shape string

// The shapes.
const (
	Constant Shape = "constant" // one every 1/Rate
	Pulse    Shape = "pulse"    // constant while on, none while off, by turns
	Jitter   Shape = "jitter"   // gaps are random, exponential, 1/Rate in the mean
)

// Config says what is sent, and when.
type Config struct {
	URL    string // http://host:port/path?query
	Method string
	Body   string
	Header []string // lines as in "Accept: text/plain"

	Conns   int // shared out among the threads
	Threads int

	// Rate is in requests a second, while on for a Pulse. With 0 each connection sends
	// the next request when the last has been answered: a closed loop.
	Rate    float64
	Shape   Shape
	On, Off time.Duration // of a Pulse
	Seed    uint64        // of a Jitter

	// Warmup requests are sent first, in a closed loop, and not counted.
	Warmup   int
	Duration time.Duration
	// Timeout is how long a request may be on its way until its connection is closed and
	// it counts as failed; and how long after Duration the answers still out are awaited.
	Timeout time.Duration

	// Beside is a URL that BesideConns further connections get in a closed loop
	// meanwhile, warm-up included. It counts apart.
	Beside      string
	BesideConns int

	// PID, if not 0, is the server, whose CPU time is taken, together with that of its
	// descendants, right before the first and after the last request that counts. The run
	// ends with it.
	PID int
}

// Check returns an error that wraps ErrConfig unless Run can work with c.
func (c *Config) Check() error {
	for _, wrong := range []struct {
		is   bool
		what string
	}{
		{c.Threads < 1, fmt.Sprintf("%d threads: want at least 1", c.Threads)},
		{c.Conns < c.Threads, fmt.Sprintf("%d connections for %d threads: want one each at least", c.Conns, c.Threads)},
		{!(c.Rate >= 0) || math.IsInf(c.Rate, 0), fmt.Sprintf("rate %v: want 0 or more", c.Rate)},
		{c.Rate > mostRate*float64(c.Threads), fmt.Sprintf("rate %v on %d threads: want at most %.0f for each", c.Rate, c.Threads, mostRate)},
		{c.Rate > 0 && c.Rate*c.longest().Seconds() < 1, fmt.Sprintf("rate %v: nothing would be due in %v", c.Rate, c.longest())},
		{c.Shape != Constant && c.Shape != Pulse && c.Shape != Jitter, fmt.Sprintf("shape %q: want constant, pulse or jitter", c.Shape)},
		{c.Shape == Pulse && (c.On <= 0 || c.Off < 0), fmt.Sprintf("pulse of %v on and %v off", c.On, c.Off)},
		{c.Duration <= 0, fmt.Sprintf("duration %v: want more than 0", c.Duration)},
		{c.Timeout <= 0, fmt.Sprintf("timeout %v: want more than 0", c.Timeout)},
		{c.Warmup < 0, fmt.Sprintf("warm-up of %d requests", c.Warmup)},
		{c.PID < 0 || c.PID > 1<<22, fmt.Sprintf("process %d", c.PID)},
		{c.Beside == "" && c.BesideConns != 0, fmt.Sprintf("%d connections beside, but no URL", c.BesideConns)},
		{c.Beside != "" && c.BesideConns < c.Threads, fmt.Sprintf("%d connections beside for %d threads: want one each at least", c.BesideConns, c.Threads)},
	} {
		if wrong.is {
			return fmt.Errorf("%w: %s", ErrConfig, wrong.what)
		}
	}
	if _, err := newTarget(c.URL, c.Method, c.Body, c.Header); err != nil {
		return err
	}
	if c.Beside == "" {
		return nil
	}
	_, err := newTarget(c.Beside, "GET", "", nil)
	return err
}

// longest is how long requests are due without a pause.
func (c *Config) longest() time.Duration {
	if c.Shape == Pulse {
		return min(c.On, c.Duration)
	}
	return c.Duration
}

// mean returns the requests a second that are due in the mean over pauses, too.
func (c *Config) mean() float64 {
	if c.Shape != Pulse {
		return c.Rate
	}
	return c.Rate * c.On.Seconds() / (c.On + c.Off).Seconds()
}
