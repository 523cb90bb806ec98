package ctxpool

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// TestSlotLayout checks that a whole line lies on either side of each slot's
// word, the first and the last of a pool included.
func TestSlotLayout(t *testing.T) {
	line := unsafe.Sizeof(cpu.CacheLinePad{})
	p := NewPool[int](4, nil, nil)
	start := uintptr(unsafe.Pointer(&p.slots[0]))
	end := start + uintptr(len(p.slots))*unsafe.Sizeof(p.slots[0])
	word := unsafe.Sizeof(p.slots[0].value)
	before := start // the end of the word before, or of what lies before the slots
	for i := range p.slots {
		at := uintptr(unsafe.Pointer(&p.slots[i].value))
		if at-before < line {
			t.Errorf("slot %d: %d bytes before its word, want %d", i, at-before, line)
		}
		before = at + word
	}
	if end-before < line {
		t.Errorf("%d bytes after the last word, want %d", end-before, line)
	}
}
