package codec

import (
	"strconv"
	"testing"
)

// TestKeySetScopes checks that objects do not see each other's keys, whether
// they are small, large or closed by now.
func TestKeySetScopes(t *testing.T) {
	var k keySet
	addAll := func(o *scope, n int, want bool) {
		t.Helper()
		for i := range n {
			if got := k.add(o, []byte(strconv.Itoa(i))); got != want {
				t.Fatalf("add of key %d = %v, want %v", i, got, want)
			}
		}
	}
	for range 3 { // documents
		outer := k.enter()
		addAll(&outer, 5, true)
		for range 20 {
			for _, n := range []int{0, 1, fewKeys, fewKeys + 1, 100} {
				inner := k.enter()
				addAll(&inner, n, true)
				addAll(&inner, n, false)
				k.leave(inner)
			}
		}
		addAll(&outer, 5, false)
		for i := 5; i < 300; i++ {
			if !k.add(&outer, []byte(strconv.Itoa(i))) {
				t.Fatalf("key %d is not new", i)
			}
		}
		addAll(&outer, 300, false)
		k.leave(outer)
		k.reset()
	}
}

// TestKeySetProbes counts the steps that finding a free entry takes, with the
// same keys in many objects: were they to meet, a body of such objects would
// take quadratic time.
func TestKeySetProbes(t *testing.T) {
	var k keySet
	const objects = 300
	for range objects {
		o := k.enter()
		for i := range 40 {
			if !k.add(&o, []byte(strconv.Itoa(i))) {
				t.Fatalf("key %d is not new", i)
			}
		}
		k.leave(o)
	}
	if want := objects * 40; k.used != want {
		t.Fatalf("%d entries in use, want %d", k.used, want)
	}
	total, mask := 0, len(k.table)-1
	for i, e := range k.table {
		if e.object != 0 {
			total += (i - int(e.hash)) & mask
		}
	}
	// Linear probing at a load of three quarters takes 1.5 steps on average.
	if mean := float64(total) / float64(k.used); mean > 3 {
		t.Errorf("an entry is %.1f steps from its place on average", mean)
	}
}

// TestKeySetForgets checks that a large document leaves little behind.
func TestKeySetForgets(t *testing.T) {
	var k keySet
	o := k.enter()
	for i := range 2 * keptEntries {
		k.add(&o, k.unescape([]byte(`\u0041`+strconv.Itoa(i))))
	}
	k.reset()
	if len(k.table) > keptEntries || cap(k.text) > 6*keptEntries || len(k.few) != 0 {
		t.Errorf("kept %d entries, %d bytes of text and %d keys", len(k.table), cap(k.text), len(k.few))
	}
	for _, key := range k.few[:cap(k.few)] {
		if key != nil {
			t.Fatal("a key is still held")
		}
	}
}
