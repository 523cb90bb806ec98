//go:build !race

package stats

import (
	"testing"
	"time"
)

func TestNoAllocs(t *testing.T) {
	r := NewRegistry(4)
	c := r.Counter("a_total", "", "x").With("1")
	h := r.Histogram("b_seconds", "", []float64{0.001, 0.01, 0.1, 1}).With()
	shard := uint64(0)
	for name, f := range map[string]func(){
		"Counter.Add":       func() { shard++; c.Add(shard, 1) },
		"Counter.Value":     func() { _ = c.Value() },
		"Histogram.Observe": func() { shard++; h.Observe(shard, 20*time.Millisecond) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
