package openloop

import (
	"math"
	"math/rand/v2"
	"time"
)

// schedule tells when the requests of one of several threads are due. Constant and pulse
// are one sequence dealt out in turn. Jitter is a Poisson process for each thread, which
// together are one of the whole rate.
type schedule struct {
	shape    Shape
	rate     float64 // of all threads
	on, off  time.Duration
	end      time.Duration
	at, step int64 // number of the next request in the sequence of all
	gap      float64
	random   *rand.Rand
	last     float64 // ns, of a jitter
}

func newSchedule(c *Config, thread int) *schedule {
	return &schedule{
		shape: c.Shape, rate: c.Rate, on: c.On, off: c.Off, end: c.Duration,
		at: int64(thread), step: int64(c.Threads),
		gap:    float64(c.Threads) / c.Rate * 1e9,
		random: rand.New(rand.NewPCG(c.Seed, uint64(thread))),
	}
}

// next returns when the next request is due, from the start. ok is false after the last.
func (s *schedule) next() (due time.Duration, ok bool) {
	switch s.shape {
	case Pulse:
		each := int64(math.Ceil(s.rate*s.on.Seconds() - 1e-6)) // 3200.0000000000005 is 3200
		due = time.Duration(s.at/each)*(s.on+s.off) + s.after(s.at%each)
	case Jitter:
		s.last += s.random.ExpFloat64() * s.gap
		due = time.Duration(s.last)
	default:
		due = s.after(s.at)
	}
	s.at += s.step
	return due, due < s.end
}

// after returns how long n requests take at the rate. It does not add up gaps: rounding
// each would drift.
func (s *schedule) after(n int64) time.Duration {
	return time.Duration(math.Round(float64(n) / s.rate * 1e9))
}
