package affinity

import (
	"slices"
	"testing"
)

// set reads a list that the test knows to be right.
func set(t testing.TB, list string) Set {
	t.Helper()
	s, err := ParseSet(list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSetAlgebra(t *testing.T) {
	tests := []struct {
		a, b                         string
		union, intersect, difference string
	}{
		{"", "", "", "", ""},
		{"0-3", "", "0-3", "", "0-3"},
		{"", "0-3", "0-3", "", ""},
		{"0-3", "2-5", "0-5", "2-3", "0-1"},
		{"0-3", "4-7", "0-7", "", "0-3"},
		{"0-200", "63-64", "0-200", "63-64", "0-62,65-200"},
		{"1", "1,5000", "1,5000", "1", ""},
		{"1,5000", "5000", "1,5000", "5000", "1"},
		{"0-65535", "1-65534", "0-65535", "1-65534", "0,65535"},
	}
	for _, tt := range tests {
		a, b := set(t, tt.a), set(t, tt.b)
		for _, op := range []struct {
			name string
			got  Set
			want string
		}{
			{"union", a.Union(b), tt.union},
			{"intersection", a.Intersect(b), tt.intersect},
			{"difference", a.Difference(b), tt.difference},
		} {
			// Equal too, because a set with zero words at its end prints the
			// same and would compare unequal.
			if op.got.String() != op.want || !op.got.Equal(set(t, op.want)) {
				t.Errorf("%s of %q and %q = %q, want %q", op.name, tt.a, tt.b, op.got, op.want)
			}
		}
		if a.String() != tt.a || b.String() != tt.b {
			t.Errorf("an operation changed %q to %q or %q to %q", tt.a, a, tt.b, b)
		}
	}
}

func TestSetElements(t *testing.T) {
	tests := []struct {
		list string
		want []int
	}{
		{"", nil},
		{"0", []int{0}},
		{"31-32,63-64,1024", []int{31, 32, 63, 64, 1024}},
		{"65535", []int{65535}},
	}
	for _, tt := range tests {
		s := set(t, tt.list)
		if got := slices.Collect(s.All()); !slices.Equal(got, tt.want) {
			t.Errorf("%q.All() = %v, want %v", tt.list, got, tt.want)
		}
		if s.Len() != len(tt.want) || s.Empty() != (len(tt.want) == 0) {
			t.Errorf("%q: Len() = %d, Empty() = %v", tt.list, s.Len(), s.Empty())
		}
		first, ok := s.Min()
		if ok != (len(tt.want) > 0) || ok && first != tt.want[0] {
			t.Errorf("%q.Min() = %d, %v", tt.list, first, ok)
		}
		for cpu := -65; cpu <= MaxCPU+65; cpu++ {
			if s.Contains(cpu) != slices.Contains(tt.want, cpu) {
				t.Errorf("%q.Contains(%d) = %v", tt.list, cpu, s.Contains(cpu))
			}
		}
	}
}

func TestSetAllStopsEarly(t *testing.T) {
	var got []int
	for cpu := range set(t, "3-200").All() {
		if got = append(got, cpu); len(got) == 2 {
			break
		}
	}
	if !slices.Equal(got, []int{3, 4}) {
		t.Errorf("got %v, want [3 4]", got)
	}
}

// A copy shares memory with the original, which must not show.
func TestSetCopiesAreIndependent(t *testing.T) {
	a := set(t, "0-3")
	b := a
	if err := b.UnmarshalText([]byte("7")); err != nil {
		t.Fatal(err)
	}
	if a.String() != "0-3" || b.String() != "7" {
		t.Errorf("a = %q, b = %q, want 0-3 and 7", a, b)
	}
}

func TestSetOf(t *testing.T) {
	if got := SetOf(70, 3, 3, -1, MaxCPU, MaxCPU+1).String(); got != "3,70,65535" {
		t.Errorf("got %s", got)
	}
	if !SetOf().Empty() {
		t.Error("the set of nothing is not empty")
	}
}
