package affinity

import "strconv"

// ParseSet reads a CPU list in the grammar of the kernel (bitmap_parselist in
// lib/bitmap-str.c; "List format" in cpuset(7)): decimal numbers and ranges,
// "0-7,16-23", and the first m CPUs of every n in a range, "0-31:2/4". Commas
// and white space separate, one or many; "" and "\n" are the empty set.
//
// It is stricter than the kernel in these:
//   - "N" (the last CPU) and "all" are errors: how many CPUs there are is not
//     known here. [ParseList] takes them;
//   - after a newline nothing but separators may follow: the kernel ignores
//     what follows or reads it, depending on what stands before;
//   - bytes 0x00 and 0xa0 are errors, where the kernel has the end of the
//     string and a space;
//   - a CPU number above [MaxCPU] is an error, found before memory is taken
//     for it.
//
// The error is a [*ParseError].
func ParseSet(list string) (Set, error) {
	var s Set
	err := scan(list, func(r region) string {
		if r.relative() {
			return "the number of CPUs is not known here, write it out"
		}
		r.addTo(&s)
		return ""
	})
	if err != nil {
		return Set{}, err
	}
	return s, nil
}

// String returns the list in the form the kernel prints: ascending ranges
// without patterns or spaces, "0-7,16,18-19"; "" for the empty set.
// [ParseSet] reads it back.
func (s Set) String() string { return string(s.appendList(nil)) }

// MarshalText returns what [Set.String] returns. The error is always nil.
func (s Set) MarshalText() ([]byte, error) { return s.appendList(nil), nil }

// UnmarshalText sets s to what [ParseSet] reads from text, and leaves s alone
// on an error. With it a Set is a [flag.TextVar] and a value in a
// configuration file.
func (s *Set) UnmarshalText(text []byte) error {
	t, err := ParseSet(string(text))
	if err != nil {
		return err
	}
	*s = t
	return nil
}

func (s Set) appendList(dst []byte) []byte {
	lo, hi := -1, -2
	flush := func() {
		if lo < 0 {
			return
		}
		if len(dst) > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(lo), 10)
		if hi > lo {
			dst = append(dst, '-')
			dst = strconv.AppendInt(dst, int64(hi), 10)
		}
	}
	for cpu := range s.All() {
		if cpu != hi+1 {
			flush()
			lo = cpu
		}
		hi = cpu
	}
	flush()
	return dst
}
