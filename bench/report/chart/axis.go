package chart

import (
	"math"
	"slices"
)

// scale maps figures to pixels.
type scale struct {
	log        bool
	low, high  float64 // figures
	start, end float64 // pixels
}

func (s scale) at(v float64) float64 {
	low, high := s.low, s.high
	if s.log {
		low, high, v = math.Log10(low), math.Log10(high), math.Log10(v)
	}
	if high == low {
		return s.start
	}
	return s.start + (v-low)/(high-low)*(s.end-s.start)
}

// ticks returns round figures from low to high, about n of them on a linear scale.
func ticks(low, high float64, n int, log bool) []float64 {
	if log {
		return logTicks(low, high)
	}
	step := roundUp((high - low) / float64(n))
	if step <= 0 || !finite(step) {
		return nil
	}
	var t []float64
	for i := math.Ceil(low/step - 1e-9); i*step <= high*(1+1e-9); i++ {
		t = append(t, i*step)
	}
	return t
}

// logTicks returns the powers of ten, and 2 and 5 times them where these are few.
func logTicks(low, high float64) []float64 {
	if math.Log10(high/low) < 3 {
		return ticksOf(low, high, []float64{1, 2, 5})
	}
	return ticksOf(low, high, []float64{1})
}

// ticksOf returns multiples of the powers of ten.
func ticksOf(low, high float64, multiples []float64) []float64 {
	if !(low > 0) || !finite(high) {
		return nil
	}
	var t []float64
	for e := math.Floor(math.Log10(low)); e <= math.Log10(high)+1e-9; e++ {
		for _, m := range multiples {
			if v := m * math.Pow(10, e); v >= low*(1-1e-9) && v <= high*(1+1e-9) {
				t = append(t, v)
			}
		}
	}
	return t
}

// powers returns the powers of two from low to high, or of four or eight if they are many.
func powers(low, high float64) []float64 {
	if !(low > 0) || !finite(high) {
		return nil
	}
	step := math.Max(1, math.Ceil(math.Log2(high/low)/9))
	var t []float64
	for e := math.Ceil(math.Log2(low) - 1e-9); e <= math.Log2(high)+1e-9; e += step {
		t = append(t, math.Exp2(e))
	}
	return t
}

// roundUp returns the next of 1, 2, 5, 10, 20, ...
func roundUp(x float64) float64 { return roundTo(x, []float64{1, 2, 5, 10}, false) }

// roundDown returns the one before.
func roundDown(x float64) float64 { return roundTo(x, []float64{5, 2, 1}, true) }

func roundTo(x float64, steps []float64, down bool) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	i := slices.IndexFunc(steps, func(m float64) bool {
		if down {
			return m*unit <= x*(1+1e-9)
		}
		return m*unit >= x*(1-1e-9)
	})
	if i < 0 {
		return unit
	}
	return steps[i] * unit
}

// apart moves places, which ascend, as little as it takes for gap between any two of them,
// within low and high as long as there is room.
//
// With place[i] = q[i] + i*gap the condition is that q ascends: the nearest such q is
// found by pooling neighbours that do not.
func apart(places []float64, gap, low, high float64) []float64 {
	type pool struct {
		sum float64
		n   int
	}
	var pools []pool
	for i, p := range places {
		pools = append(pools, pool{p - float64(i)*gap, 1})
		for n := len(pools); n > 1; n = len(pools) {
			a, b := pools[n-2], pools[n-1]
			if a.sum/float64(a.n) <= b.sum/float64(b.n) {
				break
			}
			pools = append(pools[:n-2], pool{a.sum + b.sum, a.n + b.n})
		}
	}
	moved := make([]float64, 0, len(places))
	top := high - float64(len(places)-1)*gap
	for _, p := range pools {
		q := math.Max(math.Min(p.sum/float64(p.n), top), low)
		for range p.n {
			moved = append(moved, q+float64(len(moved))*gap)
		}
	}
	return moved
}
