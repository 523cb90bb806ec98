package openloop

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"pinion/bench/record"
)

// What a histogram tells apart: 1 µs to 60 s, to three digits. Longer counts as 60 s.
const (
	shortest = time.Microsecond
	longest  = time.Minute
)

// newHistogram returns one of nanoseconds.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(shortest), int64(longest), 3)
}

// add records d. It cannot fail, since d is brought within the bounds.
func add(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(int64(min(max(d, 0), longest)))
}

// latencyOf describes a histogram of nanoseconds.
func latencyOf(h *hdrhistogram.Histogram) record.Latency {
	return describe(h.TotalCount(), time.Duration(h.Max()), func(part float64) time.Duration {
		return time.Duration(h.ValueAtPercentile(part * 100))
	})
}

// describe makes a Latency of n values. The quantiles are eight to each decade of
// 1/(1-part), at the same parts for every n, so that they can be compared from run to
// run; about 40 for 100,000 values. One more stands for the last value: the maximum, at
// the middle of its rank, since at 1 it could not be drawn.
func describe(n int64, most time.Duration, quantile func(part float64) time.Duration) record.Latency {
	if n == 0 {
		return record.Latency{}
	}
	at := func(part float64) float64 { return float64(min(quantile(part), most)) / 1e3 }
	l := record.Latency{P50: at(0.5), P90: at(0.9), P99: at(0.99), P999: at(0.999), Max: float64(most) / 1e3}
	const each = 8
	for i := 0; i <= int(each*math.Log10(float64(n))); i++ {
		part := 1 - math.Pow(10, -float64(i)/each)
		l.Quantiles = append(l.Quantiles, record.Quantile{Part: part, Micros: at(part)})
	}
	l.Quantiles = append(l.Quantiles, record.Quantile{Part: 1 - 0.5/float64(n), Micros: l.Max})
	return l
}
