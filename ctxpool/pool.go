package ctxpool

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/cpu"
)

// maxSlots caps the slots of a Pool. More would hold back memory that nobody
// uses: a slot helps only a goroutine that runs at the same time as the others.
const maxSlots = 1 << 12

// Pool keeps values of T close to the loop or connection that uses them: one
// value in each of its slots, what is more in a [sync.Pool]. It is safe for
// concurrent use and must not be copied.
type Pool[T any] struct {
	resting  resting[T]
	slots    []slot[T]
	mask     uint64
	fresh    func() *T
	reset    func(*T)
	overflow sync.Pool
}

// slot holds one value at rest. The pads keep two slots, and a slot and what
// the allocator places beside it, off one cache line.
type slot[T any] struct {
	_     cpu.CacheLinePad
	value atomic.Pointer[T]
	_     cpu.CacheLinePad
}

// NewPool makes a pool of the given number of slots, rounded up to a power of
// two and at most 4096; 0 or less means GOMAXPROCS. The function fresh makes a value
// when none is at rest; nil means new(T). The function reset makes a value fit for its next user,
// and lets go of what it refers to; nil means it needs none. Both are called by
// many goroutines at once.
func NewPool[T any](slots int, fresh func() *T, reset func(*T)) *Pool[T] {
	if slots <= 0 {
		slots = runtime.GOMAXPROCS(0)
	}
	slots = 1 << bits.Len(uint(min(slots, maxSlots)-1))
	if fresh == nil {
		fresh = func() *T { return new(T) }
	}
	return &Pool[T]{
		slots: make([]slot[T], slots),
		mask:  uint64(slots - 1),
		fresh: fresh,
		reset: reset,
	}
}

// Get returns a value that belongs to the caller until it is Put. The hint picks the
// slot that is tried first; the same hint in Get and Put finds the same value
// again. A loop's number or a connection's id does well.
func (p *Pool[T]) Get(hint uint64) *T {
	v := p.take(hint)
	if v == nil {
		return p.fresh()
	}
	p.resting.leave(v)
	return v
}

func (p *Pool[T]) take(hint uint64) *T {
	// Load first: a swap would take the cache line from its owner for nothing.
	if s := &p.slots[hint&p.mask]; s.value.Load() != nil {
		if v := s.value.Swap(nil); v != nil {
			return v
		}
	}
	v, _ := p.overflow.Get().(*T)
	return v
}

// Put resets v and gives it back. The caller must not use v any more, nor put it
// a second time: the pool would hand it to two users at once, and a race build
// panics instead. A nil v is ignored.
func (p *Pool[T]) Put(hint uint64, v *T) {
	if v == nil {
		return
	}
	p.resting.enter(v)
	if p.reset != nil {
		p.reset(v)
	}
	s := &p.slots[hint&p.mask]
	if s.value.Load() == nil && s.value.CompareAndSwap(nil, v) {
		return
	}
	p.overflow.Put(v)
}
