package stats

import (
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkAdd compares the sharded counter with the single atomic it stands in for,
// with as many goroutines as CPUs writing at once.
func BenchmarkAdd(b *testing.B) {
	b.Run("counter", func(b *testing.B) {
		c := NewRegistry(0).Counter("a_total", "").With()
		var workers atomic.Uint64
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			shard := workers.Add(1)
			for pb.Next() {
				c.Add(shard, 1)
			}
		})
		if c.Value() != uint64(b.N) {
			b.Fatalf("counted %d, want %d", c.Value(), b.N)
		}
	})
	b.Run("single", func(b *testing.B) {
		var n atomic.Uint64
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				n.Add(1)
			}
		})
		if n.Load() != uint64(b.N) {
			b.Fatalf("counted %d, want %d", n.Load(), b.N)
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	bounds := []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	for _, d := range []time.Duration{50 * time.Microsecond, 4 * time.Millisecond, time.Minute} {
		b.Run(d.String(), func(b *testing.B) {
			h := NewRegistry(0).Histogram("a_seconds", "", bounds).With()
			var workers atomic.Uint64
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				shard := workers.Add(1)
				for pb.Next() {
					h.Observe(shard, d)
				}
			})
		})
	}
}

func BenchmarkSnapshot(b *testing.B) {
	r := NewRegistry(64)
	v := r.Histogram("a_seconds", "", []float64{.001, .01, .1, 1}, "n")
	for i := range 100 {
		v.With(string(rune('a'+i))).Observe(0, time.Second)
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(r.Snapshot()) != 1 {
			b.Fatal("no snapshot")
		}
	}
}
