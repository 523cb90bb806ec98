//go:build !race

package main

import (
	"bufio"
	"io"
	"testing"
)

// TestAllocations answers whole requests: parse, route, handle, measure, write.
// A route that is answered from L1 must leave nothing to the collector.
func TestAllocations(t *testing.T) {
	p := newProduct(t)
	for _, c := range requests {
		if c.allocs < 0 {
			continue
		}
		r, w := newRequest(c.text), bufio.NewWriterSize(io.Discard, 4<<10)
		got := testing.AllocsPerRun(200, func() {
			if status, err := p.answer(r, w); err != nil || status != c.status {
				t.Fatalf("%s: status %d, %v", c.name, status, err)
			}
		})
		if got > c.allocs {
			t.Errorf("%s: %v allocations, want at most %v", c.name, got, c.allocs)
		}
	}
}
