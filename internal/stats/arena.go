package stats

import (
	"sync/atomic"

	"golang.org/x/sys/cpu"
)

// blockWords is how many cells one block holds: 2 KiB, enough for the counters and
// the largest histogram (maxBounds) that one request touches.
const blockWords = 256

// block is a run of cells that belong to one shard. The pads keep whatever the
// allocator puts before and after it, the blocks of other shards among it, on other
// cache lines.
//
// Cells are not padded one from another: those of one shard are written by one loop,
// so it is good that the few a request touches share lines.
type block struct {
	_     cpu.CacheLinePad
	words [blockWords]atomic.Uint64
	_     cpu.CacheLinePad
}

// arena deals out cells: the same number for each shard, those of one shard next to
// each other. It never takes any back. Not for concurrent use.
type arena struct {
	shards int
	blocks []*block // the blocks being filled, one per shard
	used   int      // words dealt from each of them
}

// alloc returns n zero cells per shard. n is at most blockWords.
func (a *arena) alloc(n int) [][]atomic.Uint64 {
	if a.blocks == nil || a.used+n > blockWords {
		a.blocks = make([]*block, a.shards)
		for i := range a.blocks {
			a.blocks[i] = new(block)
		}
		a.used = 0
	}
	cells := make([][]atomic.Uint64, a.shards)
	for i, b := range a.blocks {
		cells[i] = b.words[a.used : a.used+n : a.used+n]
	}
	a.used += n
	return cells
}
