package affinity

import (
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// slowParse is the grammar said another way: a pattern for a region, numbers
// of any size, and a question asked of every CPU there can be.
func slowParse(list string) (cpus []int, ok bool) {
	regions := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(", \t\n\v\f\r", r) })
	}
	line, rest, _ := strings.Cut(list, "\n")
	if len(regions(rest)) > 0 {
		return nil, false
	}
	grammar := regexp.MustCompile(`^([0-9]+)(?:-([0-9]+)(?::([0-9]+)/([0-9]+))?)?$`)
	var in [MaxCPU + 1]bool
	for _, text := range regions(line) {
		m := grammar.FindStringSubmatch(text)
		if m == nil {
			return nil, false
		}
		var n [4]int
		for i, digits := range m[1:] {
			if digits == "" {
				continue
			}
			b, _ := new(big.Int).SetString(digits, 10)
			if b.Cmp(big.NewInt(1<<32)) >= 0 {
				return nil, false
			}
			n[i] = int(b.Int64())
		}
		start, end, used, group := n[0], n[1], n[2], n[3]
		if m[2] == "" {
			end = start
		}
		if m[3] == "" {
			used, group = 1, 1
		}
		if start > end || end > MaxCPU || group == 0 || used > group {
			return nil, false
		}
		for cpu := start; cpu <= end; cpu++ {
			in[cpu] = in[cpu] || (cpu-start)%group < used
		}
	}
	for cpu, is := range in {
		if is {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, true
}

func FuzzParseSet(f *testing.F) {
	for _, list := range []string{
		"", "\n", "0", "0-7", "0-7,16-23\n", "0-31:2/4", "0-3:0/4", // right
		"5-9:1/4294967295", " 1\t2\r\n", ",,", "63,64,65535",
		"0-", "-1", "7-4", "0-3:5/4", "0-3:1/0", "0-3:1", "4:1/2", "0 - 3", // wrong
		"all", "0-N", "0\x00", "0\xa0", "0-3\n5", "\n5", "0-3:1/2\n5", "65536",
		"1-9223372036854775807", "1-18446744073709551617", "0-3:1/4294967296",
	} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		if len(list) > 1<<10 {
			return // the oracle is slow
		}
		want, ok := slowParse(list)
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
