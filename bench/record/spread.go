package record

import (
	"fmt"
	"math"
	"slices"
)

// Steady is the largest Width of a figure that counts as steady.
const Steady = 0.10

// Spread is a figure over the rounds.
type Spread struct {
	Median, Min, Max float64
	// Low and High are the first and the third quartile.
	Low, High float64
	N         int
}

// SpreadOf returns the spread of v, which it does not change. Of nothing it is all NaN.
func SpreadOf(v []float64) Spread {
	if len(v) == 0 {
		nan := math.NaN()
		return Spread{nan, nan, nan, nan, nan, 0}
	}
	v = slices.Clone(v)
	slices.Sort(v)
	return Spread{quantile(v, 0.5), v[0], v[len(v)-1], quantile(v, 0.25), quantile(v, 0.75), len(v)}
}

// quantile interpolates between the two values next to it.
func quantile(ascending []float64, part float64) float64 {
	at := part * float64(len(ascending)-1)
	i := int(at)
	if i+1 == len(ascending) {
		return ascending[i]
	}
	return ascending[i] + (at-float64(i))*(ascending[i+1]-ascending[i])
}

// Width is the distance between the quartiles as a part of the median. Not between
// minimum and maximum, which only grows with the number of rounds.
func (s Spread) Width() float64 { return (s.High - s.Low) / s.Median }

// Unsteady reports whether a figure moves too much from round to round to be relied on.
func (s Spread) Unsteady() bool { return s.N < 3 || !(s.Width() <= Steady) }

// Text writes the spread as in "12.3 (11.8 to 14.0)".
func (s Spread) Text(format string) string {
	return fmt.Sprintf(format+" ("+format+" to "+format+")", s.Median, s.Min, s.Max)
}

// Key names what samples have in common that are rounds of the same measurement.
type Key struct {
	Scenario string
	Conns    int
	Peer     string
}

// Key returns that of a sample.
func (s *Sample) Key() Key { return Key{s.Scenario, s.Conns, s.Peer} }

// Of returns the samples with the key, in the order they were taken.
func (r *Run) Of(key Key) []Sample {
	var of []Sample
	for i := range r.Samples {
		if r.Samples[i].Key() == key {
			of = append(of, r.Samples[i])
		}
	}
	return of
}

// SpreadOf returns the spread of a figure of the samples with the key.
func (r *Run) SpreadOf(key Key, figure func(*Sample) float64) Spread {
	var v []float64
	for _, s := range r.Of(key) {
		v = append(v, figure(&s))
	}
	return SpreadOf(v)
}

// Ratios returns a figure of one peer divided by that of another in the same round: both
// of a round saw the same host. Rounds that lack one of the two are left out.
func (r *Run) Ratios(of, to Key, figure func(*Sample) float64) []float64 {
	divisors := map[int]float64{}
	for _, s := range r.Of(to) {
		divisors[s.Round] = figure(&s)
	}
	var ratios []float64
	for _, s := range r.Of(of) {
		if d := divisors[s.Round]; d > 0 {
			ratios = append(ratios, figure(&s)/d)
		}
	}
	return ratios
}

// CPU returns the CPU times per request of the samples with the key, without what the whole
// round was faster or slower than others: each is divided by the median, over all peers of
// the round, of their figure in terms of their own median. The frequency of a CPU and the
// neighbours of a virtual machine move all peers alike, and would else make every figure
// look unsteady. Fewer than three peers do not tell what moves all.
func (r *Run) CPU(key Key) []float64 {
	medians := map[string]float64{}
	moved := map[int][]float64{} // by round
	for i := range r.Samples {
		s := &r.Samples[i]
		if s.Scenario != key.Scenario || s.Conns != key.Conns || s.Micros() <= 0 {
			continue
		}
		if medians[s.Peer] == 0 {
			medians[s.Peer] = r.SpreadOf(s.Key(), (*Sample).Micros).Median
		}
		moved[s.Round] = append(moved[s.Round], s.Micros()/medians[s.Peer])
	}
	var v []float64
	for _, s := range r.Of(key) {
		switch all := moved[s.Round]; {
		case s.Micros() <= 0:
		case len(all) < 3:
			v = append(v, s.Micros())
		default:
			v = append(v, s.Micros()/SpreadOf(all).Median)
		}
	}
	return v
}
