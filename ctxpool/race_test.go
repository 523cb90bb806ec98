//go:build race

package ctxpool_test

import (
	"runtime"
	"strings"
	"testing"

	"pinion/ctxpool"
)

func mustPanic(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got, _ := recover().(string); !strings.Contains(got, want) {
			t.Errorf("panic = %q, want %q", got, want)
		}
	}()
	f()
}

func TestPutTwicePanics(t *testing.T) {
	p := ctxpool.NewPool[item](1, nil, nil)
	a, b := p.Get(0), p.Get(0)
	p.Put(0, a)
	mustPanic(t, "item put twice", func() { p.Put(0, a) })
	p.Put(0, b) // to the overflow
	mustPanic(t, "item put twice", func() { p.Put(7, b) })

	if got := p.Get(0); got != a {
		t.Fatal("another value than the slot held")
	}
	p.Put(0, a) // lent and put again: no second Put
}

// TestRestingForgets checks that watching values does not keep them alive.
func TestRestingForgets(t *testing.T) {
	p := ctxpool.NewPool[item](1, nil, nil)
	defer runtime.KeepAlive(p)
	gone := make(chan struct{})
	func() {
		slot, over := p.Get(0), p.Get(0)
		runtime.AddCleanup(over, func(c chan struct{}) { close(c) }, gone)
		p.Put(0, slot)
		p.Put(0, over)
	}()
	for range 10 {
		runtime.GC()
		select {
		case <-gone:
			return
		default:
			runtime.Gosched()
		}
	}
	<-gone // or the test times out
}
