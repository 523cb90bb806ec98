//go:build !race

package ctxpool_test

import (
	"testing"

	"pinion/ctxpool"
)

func TestNoAllocs(t *testing.T) {
	p := ctxpool.NewPool(1, nil, func(v *item) { v.data = v.data[:0] })
	var b ctxpool.Buffers
	for _, tt := range []struct {
		name string
		call func()
	}{
		{"slot", func() { p.Put(0, p.Get(0)) }},
		{"buffers", func() {
			small, large := b.Small(), b.Large()
			small.B = append(small.B, "a line"...)
			large.B = append(large.B, make([]byte, 2*ctxpool.MaxSmall)...)
			b.Put(large)
			b.Put(small)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.call()
			if n := testing.AllocsPerRun(100, tt.call); n != 0 {
				t.Errorf("%v allocations, want none", n)
			}
		})
	}
}

// TestPutTwiceDoesNotPanic: in a normal build a caller's mistake must not end
// the process.
func TestPutTwiceDoesNotPanic(t *testing.T) {
	p := ctxpool.NewPool[item](1, nil, nil)
	v := p.Get(0)
	p.Put(0, v)
	p.Put(0, v)
	var b ctxpool.Buffers
	buf := b.Small()
	b.Put(buf)
	b.Put(buf)
}
