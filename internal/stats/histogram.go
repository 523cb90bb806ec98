package stats

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// maxBounds keeps the cells of one histogram (a bucket per bound, one for what is
// above them all, the sum) within half a block.
const maxBounds = blockWords/2 - 2

// Histogram counts durations by bucket. It is safe for concurrent use.
type Histogram struct {
	limits []int64           // inclusive upper bounds in ns, ascending
	cells  [][]atomic.Uint64 // per shard: len(limits)+1 buckets, then the sum in ns
}

// Observe counts d in the shard that shard picks (see Counter.Add). A negative d, as
// a clock that was set back gives, counts as zero. It takes no lock and does not
// allocate.
func (h *Histogram) Observe(shard uint64, d time.Duration) {
	ns := max(int64(d), 0)
	// A straight scan from the low end: most requests end in the first few buckets, and
	// there the branches are predicted, which those of a binary search are not.
	i := 0
	for i < len(h.limits) && ns > h.limits[i] {
		i++
	}
	cells := h.cells[shard&uint64(len(h.cells)-1)]
	cells[i].Add(1)
	cells[len(h.limits)+1].Add(uint64(ns))
}

// buckets returns the number of observations in each bucket by itself, the one above
// all bounds last, and their sum in nanoseconds.
func (h *Histogram) buckets() (counts []uint64, sum uint64) {
	counts = make([]uint64, len(h.limits)+1)
	for _, cells := range h.cells {
		for i := range counts {
			counts[i] += cells[i].Load()
		}
		sum += cells[len(counts)].Load()
	}
	return counts, sum
}

// HistogramVec is a family of histograms that differ in their label values. It is
// safe for concurrent use.
type HistogramVec struct {
	vec[Histogram]
	bounds []float64 // seconds
	limits []int64   // the same in ns
}

// With returns the histogram of these label values; see CounterVec.With.
func (v *HistogramVec) With(values ...string) *Histogram {
	return v.with(values, func() *Histogram {
		return &Histogram{limits: v.limits, cells: v.reg.alloc(len(v.limits) + 2)}
	})
}

func (v *HistogramVec) collect() []Series {
	return v.series(func(h *Histogram, s *Series) {
		counts, sum := h.buckets()
		s.Buckets = make([]Bucket, len(v.bounds))
		for i, n := range counts {
			s.Count += n
			if i < len(v.bounds) {
				s.Buckets[i] = Bucket{UpperBound: v.bounds[i], Count: s.Count}
			}
		}
		s.Sum = float64(sum) / float64(time.Second)
	})
}

// nanoseconds converts bounds in seconds to whole nanoseconds.
func nanoseconds(bounds []float64) ([]int64, error) {
	if len(bounds) > maxBounds {
		return nil, fmt.Errorf("%d bounds, at most %d are possible", len(bounds), maxBounds)
	}
	limits := make([]int64, len(bounds))
	last := int64(0)
	for i, b := range bounds {
		ns := math.Round(b * float64(time.Second))
		// The comparison is also false for NaN, and the upper end keeps out +Inf, which is
		// implied.
		if !(ns > float64(last) && ns < math.MaxInt64) {
			return nil, fmt.Errorf("bound %v: bounds must be positive, finite and ascending, a nanosecond apart or more", b)
		}
		last = int64(ns)
		limits[i] = last
	}
	return limits, nil
}
