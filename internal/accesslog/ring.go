package accesslog

import (
	"sync/atomic"

	"golang.org/x/sys/cpu"
)

const (
	// slotBytes is what each slot can hold before its buffer grows: most lines are about
	// 300 bytes.
	slotBytes = 512
	// keepBytes bounds what a slot keeps after a long line, so that a client cannot
	// inflate the ring for good: a line that is all escapes takes 20 KiB.
	keepBytes = 4 << 10
	// closedBit in ring.tail refuses further claims. A counter of lines never gets there.
	closedBit = 1 << 63
)

// ring is a bounded queue of lines for many producers and one consumer, after
// Dmitry Vyukov's bounded MPMC queue
// (https://www.1024cores.net/home/lock-free-algorithms/queues/bounded-mpmc-queue):
// the sequence number of a slot says whose turn it is. A producer claims a slot by
// moving the tail, fills it in place and publishes it; nobody waits for anybody.
// A producer that is preempted in between delays only the consumer.
type ring struct {
	_     cpu.CacheLinePad
	tail  atomic.Uint64 // the next position to claim, and closedBit
	_     cpu.CacheLinePad
	head  uint64 // the position of the next line; the consumer's
	_     cpu.CacheLinePad
	slots []slot // the length is a power of two
}

// slot holds the line of position p, of those with p mod len(slots) equal, when seq
// is p+1; it is free for the line of position p when seq is p.
type slot struct {
	seq atomic.Uint64
	buf []byte
	_   cpu.CacheLinePad
}

func newRing(size int) *ring {
	r := &ring{slots: make([]slot, size)}
	slab := make([]byte, size*slotBytes)
	for i := range r.slots {
		r.slots[i].seq.Store(uint64(i))
		r.slots[i].buf = slab[i*slotBytes : i*slotBytes : (i+1)*slotBytes]
	}
	return r
}

func (r *ring) at(pos uint64) *slot { return &r.slots[pos&uint64(len(r.slots)-1)] }

// claim gives the caller the slot of position pos, to fill and publish. It fails when
// the ring is full or closed.
func (r *ring) claim() (s *slot, pos uint64, ok bool) {
	for {
		pos = r.tail.Load()
		if pos&closedBit != 0 {
			return nil, 0, false
		}
		s = r.at(pos)
		switch seq := s.seq.Load(); {
		case seq == pos:
			if r.tail.CompareAndSwap(pos, pos+1) {
				return s, pos, true
			}
		case seq < pos: // the line of one lap before is still there
			return nil, 0, false
		}
		// Another producer was faster; the tail has moved.
	}
}

// publish hands the slot of position pos to the consumer.
func (s *slot) publish(pos uint64) { s.seq.Store(pos + 1) }

// next is the next line, valid until drop. It fails when the line is not there, or not
// published yet. Only the consumer calls it.
func (r *ring) next() (line []byte, ok bool) {
	s := r.at(r.head)
	if s.seq.Load() != r.head+1 {
		return nil, false
	}
	return s.buf, true
}

// drop gives the slot of the next line, which must be there, back to the producers.
// Only the consumer calls it.
func (r *ring) drop() {
	s := r.at(r.head)
	if cap(s.buf) > keepBytes {
		s.buf = make([]byte, 0, slotBytes)
	}
	s.seq.Store(r.head + uint64(len(r.slots)))
	r.head++
}

// empty reports whether next would fail. Only the consumer calls it.
func (r *ring) empty() bool { return r.at(r.head).seq.Load() != r.head+1 }

// close makes every later claim fail, and returns the position that follows the last
// one claimed.
func (r *ring) close() (end uint64) { return r.tail.Or(closedBit) &^ closedBit }
