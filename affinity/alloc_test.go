//go:build !race

package affinity

import (
	"runtime"
	"testing"
)

// A list cannot make the parser take memory for CPUs it does not accept.
func TestHostileRangeTakesNoMemory(t *testing.T) {
	for _, list := range []string{
		"1-9223372036854775807",
		"0-4294967295",
		"4294967295",
		"0-9223372036854775807:1/2",
	} {
		const runs = 1000
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			if _, err := ParseSet(list); err == nil {
				t.Fatalf("ParseSet(%q) gave no error", list)
			}
			if _, err := ParseList(list); err == nil {
				t.Fatalf("ParseList(%q) gave no error", list)
			}
		}
		runtime.ReadMemStats(&after)
		// An error is about 100 bytes; the set would be 8 KiB or more.
		if bytes := (after.TotalAlloc - before.TotalAlloc) / runs; bytes > 512 {
			t.Errorf("parsing %q takes %d bytes", list, bytes)
		}
	}
}

func TestSetReadsDoNotAllocate(t *testing.T) {
	a, b := set(t, "0-200:3/7"), set(t, "0-200:3/7")
	// Outside the functions, so that no result can be optimised away.
	var sinkInt int
	var sinkBool bool
	for name, f := range map[string]func(){
		"Contains": func() { sinkBool = a.Contains(77) },
		"Len":      func() { sinkInt = a.Len() },
		"Min":      func() { sinkInt, sinkBool = a.Min() },
		"Equal":    func() { sinkBool = a.Equal(b) },
		"All": func() {
			for cpu := range a.All() {
				sinkInt = cpu
			}
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
	runtime.KeepAlive(sinkInt)
	runtime.KeepAlive(sinkBool)
}

func BenchmarkParseSet(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		s, err := ParseSet("0-7,16-23,32-95:2/4")
		if err != nil {
			b.Fatal(err)
		}
		runtime.KeepAlive(s)
	}
}
