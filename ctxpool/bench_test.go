package ctxpool_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"pinion/ctxpool"
)

// scratch is about what a request keeps between uses.
type scratch struct {
	data []byte
}

func newScratch() *scratch {
	return &scratch{data: make([]byte, 0, 16<<10)}
}

func resetScratch(s *scratch) {
	s.data = s.data[:0]
}

// pools are the two ways to keep a scratch.
func pools() []struct {
	name string
	get  func(hint uint64) *scratch
	put  func(hint uint64, s *scratch)
} {
	ours := ctxpool.NewPool(0, newScratch, resetScratch)
	bare := sync.Pool{New: func() any { return newScratch() }}
	return []struct {
		name string
		get  func(hint uint64) *scratch
		put  func(hint uint64, s *scratch)
	}{
		{"pool", ours.Get, ours.Put},
		{
			"sync", func(uint64) *scratch { return bare.Get().(*scratch) },
			func(_ uint64, s *scratch) { resetScratch(s); bare.Put(s) },
		},
	}
}

func BenchmarkPool(b *testing.B) {
	for _, p := range pools() {
		b.Run("single/"+p.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.put(0, p.get(0))
			}
		})
	}
	for _, p := range pools() {
		b.Run("parallel/"+p.name, func(b *testing.B) {
			var users atomic.Uint64
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				hint := users.Add(1)
				for pb.Next() {
					p.put(hint, p.get(hint))
				}
			})
		})
	}
	// All users with one hint: the pool's worst case.
	for _, p := range pools() {
		b.Run("contended/"+p.name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					p.put(0, p.get(0))
				}
			})
		})
	}
	// The first request after two collections, which are not timed.
	for _, p := range pools() {
		b.Run("after-gc/"+p.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				runtime.GC()
				runtime.GC()
				b.StartTimer()
				p.put(0, p.get(0))
			}
		})
	}
}
