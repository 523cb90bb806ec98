package accesslog

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// TestLayout proves that producers and the writer do not share cache lines unless
// they share the data.
func TestLayout(t *testing.T) {
	line := unsafe.Sizeof(cpu.CacheLinePad{})
	var r ring
	if d := unsafe.Offsetof(r.head) - unsafe.Offsetof(r.tail); d < line {
		t.Errorf("tail and head are %d bytes apart", d)
	}
	if d := unsafe.Offsetof(r.slots) - unsafe.Offsetof(r.head); d < line {
		t.Errorf("head and slots are %d bytes apart", d)
	}
	if n := unsafe.Sizeof(slot{}); n < line+unsafe.Sizeof(uint64(0)) {
		t.Errorf("a slot takes %d bytes", n)
	}
	if n := unsafe.Sizeof(turn{}); n < line+unsafe.Sizeof(uint64(0)) {
		t.Errorf("a turn takes %d bytes", n)
	}
}
