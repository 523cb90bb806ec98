package affinity

import (
	"iter"
	"math/bits"
	"slices"
)

// MaxCPU is the largest CPU number a [Set] holds. The widest kernel masks are
// 8,192 bits (NR_CPUS in arch/x86/Kconfig and arch/powerpc/Kconfig); eight
// times that leaves room, and keeps the largest set at 8 KiB whatever a list
// asks for.
const MaxCPU = 1<<16 - 1

const wordBits = bits.UintSize

// Set is a set of CPU numbers from 0 to [MaxCPU]. The zero value is the empty
// set.
//
// A Set is a value: no method but [Set.UnmarshalText] changes it, copies stay
// independent, and any number of goroutines may read it. Compare sets with
// [Set.Equal].
type Set struct {
	// The kernel's own layout, words of an unsigned long, so that system
	// calls take it as it is. The last word is never zero. Words are shared
	// between copies and must not be written once a Set was handed out.
	words []uint
}

// SetOf returns the set of the CPUs given. Numbers outside 0 to [MaxCPU] are left
// out.
func SetOf(cpus ...int) Set {
	var s Set
	for _, cpu := range cpus {
		if cpu >= 0 && cpu <= MaxCPU {
			s.addRange(cpu, cpu)
		}
	}
	return s
}

// Contains reports whether cpu is in s.
func (s Set) Contains(cpu int) bool {
	if cpu < 0 || cpu/wordBits >= len(s.words) {
		return false
	}
	return s.words[cpu/wordBits]>>(cpu%wordBits)&1 == 1
}

// Len returns how many CPUs are in s.
func (s Set) Len() int {
	n := 0
	for _, w := range s.words {
		n += bits.OnesCount(w)
	}
	return n
}

// Empty reports whether s has no CPU.
func (s Set) Empty() bool { return len(s.words) == 0 }

// Min returns the smallest CPU number in s; ok is false for the empty set.
func (s Set) Min() (cpu int, ok bool) {
	for cpu := range s.All() {
		return cpu, true
	}
	return 0, false
}

// max returns the largest CPU number in s; ok is false for the empty set.
func (s Set) max() (cpu int, ok bool) {
	n := len(s.words)
	if n == 0 {
		return 0, false
	}
	return n*wordBits - 1 - bits.LeadingZeros(s.words[n-1]), true
}

// All returns the CPU numbers in s in ascending order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range s.words {
			for ; w != 0; w &= w - 1 {
				if !yield(i*wordBits + bits.TrailingZeros(w)) {
					return
				}
			}
		}
	}
}

// Equal reports whether s and t have the same CPUs.
func (s Set) Equal(t Set) bool { return slices.Equal(s.words, t.words) }

// Union returns the CPUs that are in s or in t.
func (s Set) Union(t Set) Set {
	long, short := s.words, t.words
	if len(long) < len(short) {
		long, short = short, long
	}
	words := slices.Clone(long)
	for i, w := range short {
		words[i] |= w
	}
	return Set{words}
}

// Intersect returns the CPUs that are both in s and in t.
func (s Set) Intersect(t Set) Set {
	words := make([]uint, min(len(s.words), len(t.words)))
	for i := range words {
		words[i] = s.words[i] & t.words[i]
	}
	return setOfWords(words)
}

// Difference returns the CPUs of s that are not in t.
func (s Set) Difference(t Set) Set {
	words := slices.Clone(s.words)
	for i := range min(len(words), len(t.words)) {
		words[i] &^= t.words[i]
	}
	return setOfWords(words)
}

// setOfWords takes words over.
func setOfWords(words []uint) Set {
	n := len(words)
	for n > 0 && words[n-1] == 0 {
		n--
	}
	return Set{words[:n]}
}

// addRange puts lo to hi, both included, into a set that was not yet handed
// out. It wants 0 <= lo <= hi <= MaxCPU.
func (s *Set) addRange(lo, hi int) {
	first, last := lo/wordBits, hi/wordBits
	if n := last + 1 - len(s.words); n > 0 {
		s.words = append(s.words, make([]uint, n)...)
	}
	for i := first; i <= last; i++ {
		mask := ^uint(0)
		if i == first {
			mask <<= lo % wordBits
		}
		if i == last {
			mask &= ^uint(0) >> (wordBits - 1 - hi%wordBits)
		}
		s.words[i] |= mask
	}
}
