package codec

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestDecoderMemoryIsBounded sends documents of modest length whose long array
// is at another position each time. The parser would keep room for all of them.
func TestDecoderMemoryIsBounded(t *testing.T) {
	var d Decoder
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	body := []byte(nil)
	for at := range 500 {
		body = append(body[:0], '[')
		body = append(body, strings.Repeat("0,", at)...)
		body = append(body, '[')
		body = append(body, strings.Repeat("0,", 4000-at)...)
		body = append(body, "0]]"...)
		if _, err := d.Decode(body); err != nil {
			t.Fatal(err)
		}
	}
	// Unbounded, it is about 20 MiB for the lists alone.
	if grown := int64(heap() - before); grown > 4*maxHeld {
		t.Errorf("the Decoder holds %d bytes", grown)
	}
	runtime.KeepAlive(&d)
}

// TestArenaCounts checks the mirror of fastjson's positions: true, false and
// null take none there.
func TestArenaCounts(t *testing.T) {
	for _, tt := range []struct {
		body    string
		longest []int
		values  int
	}{
		{`1`, nil, 1},
		{`[]`, nil, 1},
		{`null`, nil, 0},
		{`[null,[1,2],"a",{"k":{}}]`, []int{4, 2, 0, 0, 0, 1}, 7},
		{`{"a":true,"b":[false],"c":[0]}`, []int{3, 1, 1}, 4},
	} {
		var d Decoder
		if _, err := d.Decode([]byte(tt.body)); err != nil {
			t.Fatal(err)
		}
		a := &d.scanner.arena
		if got, want := fmt.Sprint(a.longest), fmt.Sprint(tt.longest); got != want || a.values != tt.values {
			t.Errorf("%s: longest %s, %d values, want %s and %d", tt.body, got, a.values, want, tt.values)
		}
	}
}

// TestResetDropsLarge checks that a Decoder at rest holds no more than maxHeld
// and that a usual document stays cheap.
func TestResetDropsLarge(t *testing.T) {
	var d Decoder
	if _, err := d.Decode([]byte("[" + strings.Repeat("0,", 30_000) + "0]")); err != nil {
		t.Fatal(err)
	}
	if d.held <= maxHeld {
		t.Fatalf("held = %d after a large document", d.held)
	}
	d.Reset()
	if d.held != 0 || d.scanner.arena.most != 0 {
		t.Errorf("held = %d, most = %d after Reset", d.held, d.scanner.arena.most)
	}
	v, err := d.Decode([]byte(`[1,2]`))
	if err != nil || v.Len() != 2 {
		t.Fatalf("after Reset: length %d, %v", v.Len(), err)
	}
	d.Reset()
	if d.held == 0 {
		t.Error("Reset dropped a small document's memory")
	}
}
