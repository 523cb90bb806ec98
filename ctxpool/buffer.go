package ctxpool

import (
	"github.com/valyala/bytebufferpool"
	"golang.org/x/sys/cpu"
)

// Limits of the two classes of buffers, in bytes of capacity.
const (
	MaxSmall = 4 << 10 // a log line, a problem document, the JSON of one user
	MaxLarge = 1 << 20 // an answer with many users; a larger buffer is not kept
)

// Buffers lends byte buffers of two classes, each from a pool of its own:
// bytebufferpool sizes new buffers after those it saw most often, and one pool
// for log lines and batches would make every buffer the wrong size for one of
// them. The zero value is ready for use. It is safe for concurrent use and must
// not be copied.
//
// Each Put adds to a counter that all users of the same Buffers share, so that
// on many cores one Buffers per loop scales better than one for all.
type Buffers struct {
	resting resting[bytebufferpool.ByteBuffer]
	small   bytebufferpool.Pool
	_       cpu.CacheLinePad // the counters of one pool stay off the other's lines
	large   bytebufferpool.Pool
}

// Small returns an empty buffer for something that rarely exceeds [MaxSmall].
// It belongs to the caller until it is Put.
func (b *Buffers) Small() *bytebufferpool.ByteBuffer {
	return b.lend(&b.small)
}

// Large returns an empty buffer for something larger. It belongs to the caller
// until it is Put.
func (b *Buffers) Large() *bytebufferpool.ByteBuffer {
	return b.lend(&b.large)
}

func (b *Buffers) lend(from *bytebufferpool.Pool) *bytebufferpool.ByteBuffer {
	buf := from.Get()
	b.resting.leave(buf)
	return buf
}

// Put gives back a buffer of either class: the capacity it has grown to says
// where it goes, and one above [MaxLarge] is left to the garbage collector.
// Neither buf nor a slice of its bytes may be used any more; a race build
// overwrites the bytes and panics if buf is put twice. A nil buf is ignored.
func (b *Buffers) Put(buf *bytebufferpool.ByteBuffer) {
	if buf == nil {
		return
	}
	b.resting.enter(buf)
	Poison(buf.B)
	switch size := cap(buf.B); {
	case size <= MaxSmall:
		b.small.Put(buf)
	case size <= MaxLarge:
		b.large.Put(buf)
	}
}
