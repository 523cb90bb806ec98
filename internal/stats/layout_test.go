package stats

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// TestLayout proves that no two shards share a cache line, and that cells of one
// shard do.
func TestLayout(t *testing.T) {
	line := unsafe.Sizeof(cpu.CacheLinePad{})
	if line == 0 {
		t.Skip("x/sys/cpu knows no cache line size for this architecture")
	}
	var b block
	if off := unsafe.Offsetof(b.words); off < line {
		t.Errorf("words start %d bytes into the block, want at least %d", off, line)
	}
	if tail := unsafe.Sizeof(b) - unsafe.Offsetof(b.words) - unsafe.Sizeof(b.words); tail < line {
		t.Errorf("%d bytes follow the words, want at least %d", tail, line)
	}

	r := NewRegistry(8)
	v := r.Counter("a_total", "", "n")
	first, second := v.With("1"), v.With("2")
	for i := range first.cells {
		a, b := uintptr(unsafe.Pointer(first.cells[i])), uintptr(unsafe.Pointer(second.cells[i]))
		if b-a != unsafe.Sizeof(uint64(0)) {
			t.Errorf("shard %d: cells of two counters are %d bytes apart", i, int64(b-a))
		}
		for j := range i {
			other := uintptr(unsafe.Pointer(first.cells[j]))
			if a/line == other/line {
				t.Errorf("shards %d and %d share a cache line", i, j)
			}
		}
	}
}
