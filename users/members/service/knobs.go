package service

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// ErrKnob is wrapped by the errors about knobs.
var ErrKnob = errors.New("knob is out of range")

// Knobs say how well the service behaves. The zero value answers at once, and always.
type Knobs struct {
	// Latency is the time before an answer, and Jitter what is added to it at most, at
	// random.
	Latency, Jitter time.Duration
	// FailRatio, HangRatio and GarbageRatio are the parts of requests, from 0 to 1, that
	// get status 500, no answer, and an answer that makes no sense. Together they must
	// not be more than 1.
	FailRatio, HangRatio, GarbageRatio float64
}

// Check returns an error that wraps ErrKnob and names the knob, or nil.
func (k Knobs) Check() error {
	if k.Latency < 0 || k.Jitter < 0 {
		return fmt.Errorf("%w: latency %v and jitter %v must not be negative", ErrKnob, k.Latency, k.Jitter)
	}
	total := 0.0
	for _, ratio := range []float64{k.FailRatio, k.HangRatio, k.GarbageRatio} {
		if !(ratio >= 0 && ratio <= 1) { // NaN is refused too
			return fmt.Errorf("%w: ratio %v is not from 0 to 1", ErrKnob, ratio)
		}
		total += ratio
	}
	if total > 1 {
		return fmt.Errorf("%w: the ratios add up to %v, more than 1", ErrKnob, total)
	}
	return nil
}

// fate is what becomes of a request.
type fate uint8

const (
	answered fate = iota
	failed
	hung
	garbled
)

func (k Knobs) pick() fate {
	p := rand.Float64()
	switch {
	case p < k.FailRatio:
		return failed
	case p < k.FailRatio+k.HangRatio:
		return hung
	case p < k.FailRatio+k.HangRatio+k.GarbageRatio:
		return garbled
	default:
		return answered
	}
}

func (k Knobs) delay() time.Duration {
	if k.Jitter <= 0 {
		return k.Latency
	}
	return k.Latency + rand.N(k.Jitter+1)
}
