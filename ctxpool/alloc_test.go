//go:build !race

package ctxpool_test

import (
	"testing"

	"pinion/ctxpool"
)

func TestNoAllocs(t *testing.T) {
	p := ctxpool.NewPool(1, nil, func(v *item) { v.data = v.data[:0] })
	p.Put(0, p.Get(0))
	if n := testing.AllocsPerRun(100, func() { p.Put(0, p.Get(0)) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// TestPutTwiceDoesNotPanic: in a normal build a caller's mistake must not end
// the process.
func TestPutTwiceDoesNotPanic(*testing.T) {
	p := ctxpool.NewPool[item](1, nil, nil)
	v := p.Get(0)
	p.Put(0, v)
	p.Put(0, v)
}
