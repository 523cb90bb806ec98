package affinity

import (
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// slowParse is the grammar said another way: a pattern for a region, numbers
// of any size, and a question asked of every CPU there can be. What "all" and N
// mean it takes from allowed, in ascending order; known says whether there are
// any in the list.
func slowParse(list string, allowed []int) (cpus []int, known, ok bool) {
	regions := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(", \t\n\v\f\r", r) })
	}
	line, rest, _ := strings.Cut(list, "\n")
	if len(regions(rest)) > 0 {
		return nil, false, false
	}
	grammar := regexp.MustCompile(`^(?:` +
		`([0-9]+)|` + // 1
		`([0-9]+)-([0-9]+|N)(?::([0-9]+)/([0-9]+))?|` + // 2-3:4/5
		`(N)|` + // 6
		`N-(N)(?::([0-9]+)/([0-9]+))?|` + // N-7:8/9
		`([aA][lL][lL])(?::([0-9]+)/([0-9]+))?)$`) // 10:11/12
	number := func(digits string) int {
		b, _ := new(big.Int).SetString(digits, 10)
		if b.Cmp(big.NewInt(1<<32)) >= 0 {
			return -1
		}
		return int(b.Int64())
	}
	last, none := 0, len(allowed) == 0
	if !none {
		last = allowed[len(allowed)-1]
	}
	known = true
	var in [MaxCPU + 1]bool
	for _, text := range regions(line) {
		m := grammar.FindStringSubmatch(text)
		if m == nil {
			return nil, false, false
		}
		used, group := 1, 1
		if i := slices.IndexFunc([]string{m[4], m[8], m[11]}, func(s string) bool { return s != "" }); i >= 0 {
			at := []int{4, 8, 11}[i]
			used, group = number(m[at]), number(m[at+1])
			if used < 0 || group < 1 || used > group {
				return nil, false, false
			}
		}
		var start, end int
		selects := func(int) bool { return true }
		switch {
		case m[1] != "":
			start = number(m[1])
			end = start
		case m[3] == "N":
			known = false
			start = number(m[2])
			end = max(start, last)
		case m[2] != "":
			start, end = number(m[2]), number(m[3])
		case m[10] != "":
			known = false
			end = last
			selects = func(cpu int) bool { return slices.Contains(allowed, cpu) }
		default: // N or N-N
			known = false
			start, end = last, last
			selects = func(int) bool { return !none }
		}
		if start < 0 || end < start || end > MaxCPU {
			return nil, false, false
		}
		for cpu := start; cpu <= end; cpu++ {
			in[cpu] = in[cpu] || (cpu-start)%group < used && selects(cpu)
		}
	}
	for cpu, is := range in {
		if is {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, known, true
}

// seeds are lists right and wrong.
func seeds(f *testing.F, add func(list string)) {
	f.Helper()
	for _, list := range []string{
		"", "\n", "0", "0-7", "0-7,16-23\n", "0-31:2/4", "0-3:0/4", "0-0:1/2", // right
		"5-9:1/4294967295", " 1\t2\r\n", ",,", "63,64,65535",
		"all", "ALL:1/2", "all:2/4,9", "N", "N-N:1/2", "0-N", "4-N:1/3", "65535-N", // right in a List
		"0-", "-1", "7-4", "0-3:5/4", "0-3:1/0", "0-3:1", "4:1/2", "0 - 3", // wrong
		"N-5", "n", "all-3", "all:N/4", "0-3:1/N", "0-all", "NN", "0\x00", "0\xa0", "0-3\n5", "\n5",
		"0-3:1/2\n5", "65536", "65536-N", "4294967295-N", "18446744073709551615",
		"1-9223372036854775807", "1-18446744073709551617", "0-3:1/4294967296",
	} {
		add(list)
	}
}

func FuzzParseSet(f *testing.F) {
	seeds(f, func(list string) { f.Add(list) })
	f.Fuzz(func(t *testing.T, list string) {
		if len(list) > 1<<10 {
			return // the oracle is slow
		}
		want, known, ok := slowParse(list, nil)
		if !ok || !known {
			want, ok = nil, false
		}
		s, err := ParseSet(list)
		if (err == nil) != ok {
			t.Fatalf("ParseSet(%q): %v, the oracle says ok = %v", list, err, ok)
		}
		if got := slices.Collect(s.All()); !slices.Equal(got, want) {
			t.Fatalf("ParseSet(%q) = %v, want %v", list, got, want)
		}
		if s.Len() != len(want) {
			t.Fatalf("ParseSet(%q).Len() = %d, want %d", list, s.Len(), len(want))
		}
		again, err := ParseSet(s.String())
		if err != nil || !again.Equal(s) {
			t.Fatalf("ParseSet(%q) prints %q, which reads as %q, %v", list, s, again, err)
		}
		if err == nil && again.String() != s.String() {
			t.Fatalf("%q is not canonical: prints again as %q", s, again)
		}
	})
}

func FuzzParseList(f *testing.F) {
	seeds(f, func(list string) {
		for _, allowed := range []string{"", "0", "1,4-9,66", "0-127"} {
			f.Add(list, allowed)
		}
	})
	f.Fuzz(func(t *testing.T, text, cpus string) {
		allowed, err := ParseSet(cpus)
		if err != nil || len(text)+len(cpus) > 1<<10 || allowed.Len() > 1<<10 {
			return // the oracle is slow
		}
		want, _, ok := slowParse(text, slices.Collect(allowed.All()))
		l, err := ParseList(text)
		if (err == nil) != ok {
			t.Fatalf("ParseList(%q): %v, the oracle says ok = %v", text, err, ok)
		}
		if err != nil {
			return
		}
		if got := slices.Collect(l.In(allowed).All()); !slices.Equal(got, want) {
			t.Fatalf("ParseList(%q).In(%v) = %v, want %v", text, allowed, got, want)
		}
		if l.Empty() && len(want) > 0 {
			t.Fatalf("ParseList(%q) is empty and selects %v", text, want)
		}
		again, err := ParseList(l.String())
		if err != nil || again.String() != l.String() || again.Empty() != l.Empty() {
			t.Fatalf("ParseList(%q) prints %q, which reads as %q, %v", text, l, again, err)
		}
		// One set of CPUs could hide what was lost on the way.
		for _, in := range []Set{allowed, {}, set(t, "0"), set(t, "2,65-66"), set(t, "0-300")} {
			if !again.In(in).Equal(l.In(in)) {
				t.Fatalf("ParseList(%q) prints %q; in %v they are %v and %v", text, l, in, l.In(in), again.In(in))
			}
		}
	})
}
