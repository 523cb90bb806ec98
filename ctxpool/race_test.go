//go:build race

package ctxpool_test

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"pinion/ctxpool"
)

// TestPoisonShowsLateReads keeps views too long, and must not see the old bytes.
func TestPoisonShowsLateReads(t *testing.T) {
	poisoned := func(name string, view []byte) {
		t.Helper()
		if want := bytes.Repeat([]byte{0xDB}, len(view)); !bytes.Equal(view, want) {
			t.Errorf("%s still reads %q after its release", name, view)
		}
	}

	var b ctxpool.Buffers
	buf := b.Small()
	buf.B = append(make([]byte, 0, 64), "secret of one request"...)
	view, spare := buf.B, buf.B[:cap(buf.B)]
	b.Put(buf)
	poisoned("a buffer", view)
	poisoned("a buffer's spare capacity", spare)

	p := ctxpool.NewPool(1, nil, func(v *item) { ctxpool.Poison(v.data); v.data = v.data[:0] })
	v := p.Get(0)
	v.data = append(v.data, "secret of another"...)
	view = v.data
	p.Put(0, v)
	poisoned("a pooled value", view)
}

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

	var bufs ctxpool.Buffers
	buf := bufs.Large()
	bufs.Put(buf)
	mustPanic(t, "ByteBuffer put twice", func() { bufs.Put(buf) })
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
