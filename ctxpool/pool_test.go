package ctxpool_test

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"pinion/ctxpool"
)

type item struct {
	inUse  atomic.Bool
	resets int
	data   []byte
}

func TestPoolGivesBackTheSlotsValue(t *testing.T) {
	p := ctxpool.NewPool(4, func() *item { return new(item) }, func(v *item) { v.resets++ })
	a, b := p.Get(0), p.Get(1)
	if a == b {
		t.Fatal("one value for two users")
	}
	p.Put(0, a)
	p.Put(1, b)
	if a.resets != 1 || b.resets != 1 {
		t.Errorf("reset ran %d and %d times, want once", a.resets, b.resets)
	}
	if got := p.Get(5); got != b { // 5 and 1 share a slot of 4
		t.Error("another value than the slot held")
	}
	if got := p.Get(4); got != a {
		t.Error("another value than the slot held")
	}
	if got := p.Get(1); got == a || got == b {
		t.Error("a value that is out was lent again")
	}
}

// TestPoolSurvivesGC is why the pool is there: two collections empty a sync.Pool.
func TestPoolSurvivesGC(t *testing.T) {
	made := 0
	p := ctxpool.NewPool(2, func() *item { made++; return &item{data: make([]byte, 4096)} }, nil)
	for hint := range uint64(2) {
		p.Put(hint, &item{data: []byte{byte(hint)}})
	}
	runtime.GC()
	runtime.GC()
	for hint := range uint64(2) {
		if v := p.Get(hint); len(v.data) != 1 || v.data[0] != byte(hint) {
			t.Errorf("slot %d lost its value", hint)
		}
	}
	if made != 0 {
		t.Errorf("%d values were made", made)
	}
}

func TestPoolSlots(t *testing.T) {
	for _, tt := range []struct{ ask, want int }{
		{1, 1}, {2, 2}, {3, 4}, {64, 64}, {65, 128}, {4096, 4096}, {math.MaxInt, 4096},
	} {
		p := ctxpool.NewPool[item](tt.ask, nil, nil)
		if got := p.Slots(); got != tt.want {
			t.Errorf("%d slots asked for, got %d, want %d", tt.ask, got, tt.want)
		}
	}
	procs := runtime.GOMAXPROCS(0)
	for _, ask := range []int{0, -1} {
		got := ctxpool.NewPool[item](ask, nil, nil).Slots()
		if got < procs || got >= 2*procs || got&(got-1) != 0 {
			t.Errorf("%d slots asked for, got %d with GOMAXPROCS %d", ask, got, procs)
		}
	}
}

// TestPoolLendsToOneUser has many goroutines fight for few slots.
func TestPoolLendsToOneUser(t *testing.T) {
	p := ctxpool.NewPool(2, nil, func(v *item) { v.inUse.Store(false) })
	var wg sync.WaitGroup
	for g := range uint64(8) {
		wg.Go(func() {
			for i := range uint64(2000) {
				v := p.Get(g + i)
				if v.inUse.Swap(true) {
					t.Error("a value was lent twice")
					return
				}
				v.data = append(v.data[:0], byte(g)) // a write for the race detector to see
				p.Put(g, v)
			}
		})
	}
	wg.Wait()
}

func TestPoolPutNil(t *testing.T) {
	p := ctxpool.NewPool(1, nil, func(v *item) { v.resets++ })
	p.Put(0, nil)
	if v := p.Get(0); v == nil || v.resets != 0 {
		t.Errorf("Get = %v", v)
	}
}
