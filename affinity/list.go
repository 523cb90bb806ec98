package affinity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// separators may stand before, between and after the ranges of a list, in any
// number, as in the kernel's parser.
const separators = ", \t\n\v\f\r"

// ParseError says which part of a CPU list is wrong.
type ParseError struct {
	Token  string // the range as written
	Offset int    // of the token's first byte in the list, from 0
	Reason string
}

// Error quotes the token, cut short if it is long.
func (e *ParseError) Error() string {
	const longest = 40
	token := e.Token
	if len(token) > longest {
		token = token[:longest] + "..."
	}
	return fmt.Sprintf("CPU list: %q at byte %d: %s", token, e.Offset, e.Reason)
}

// ParseSet reads a CPU list in the grammar of the kernel (bitmap_parselist in
// lib/bitmap-str.c; "List format" in cpuset(7)): decimal numbers and ranges,
// "0-7,16-23", and the first m CPUs of every n in a range, "0-31:2/4". Commas
// and white space separate, one or many; "" and "\n" are the empty set.
//
// It is stricter than the kernel in these:
//   - "N" (the last CPU) and "all" are errors: how many CPUs there are is not
//     known here, and the caller knows what it means by all;
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
	ended := false // a newline was seen
	for rest := list; ; {
		token := strings.TrimLeft(rest, separators)
		ended = ended || strings.Contains(rest[:len(rest)-len(token)], "\n")
		if token == "" {
			return s, nil
		}
		offset := len(list) - len(token)
		if n := strings.IndexAny(token, separators); n >= 0 {
			token = token[:n]
		}
		rest = list[offset+len(token):]
		r, reason := parseRegion(token)
		if ended {
			reason = "text after the end of the line"
		}
		if reason != "" {
			return Set{}, &ParseError{Token: token, Offset: offset, Reason: reason}
		}
		r.addTo(&s)
	}
}

// region is one range of a list: the first used CPUs of every group from
// start to end. 64 bits, because a group may be as long as the kernel's
// unsigned int allows.
type region struct {
	start, end  uint64
	used, group uint64
}

func (r region) addTo(s *Set) {
	if r.used == 0 { // valid, and selects nothing
		return
	}
	for lo := r.start; lo <= r.end; lo += r.group {
		s.addRange(int(lo), int(min(lo+r.used-1, r.end)))
	}
}

// parseRegion returns the reason why token is not a region, or "".
func parseRegion(token string) (r region, reason string) {
	span, pattern, hasPattern := strings.Cut(token, ":")
	start, end, isRange := strings.Cut(span, "-")
	switch {
	case strings.EqualFold(span, "all"), start == "N", end == "N":
		return r, "the number of CPUs is not known here, write it out"
	case start == "" && isRange:
		return r, "the range has no start"
	case end == "" && isRange:
		return r, "the range has no end"
	case hasPattern && !isRange:
		return r, "a pattern needs a range before it"
	}

	if r.start, reason = parseNumber(start); reason != "" {
		return r, reason
	}
	r.end = r.start
	if isRange {
		if r.end, reason = parseNumber(end); reason != "" {
			return r, reason
		}
	}
	r.used, r.group = r.end+1, r.end+1
	if hasPattern {
		used, group, ok := strings.Cut(pattern, "/")
		if !ok {
			return r, "a pattern is written used/group, as 2/4"
		}
		if r.used, reason = parseNumber(used); reason != "" {
			return r, reason
		}
		if r.group, reason = parseNumber(group); reason != "" {
			return r, reason
		}
	}

	switch {
	case r.start > r.end:
		return r, "the range is reversed"
	case r.group == 0:
		return r, "a group of 0 CPUs"
	case r.used > r.group:
		return r, "more CPUs used than the group has"
	case r.end > MaxCPU:
		return r, "CPU number above " + strconv.Itoa(MaxCPU)
	}
	return r, ""
}

// parseNumber takes digits only: strconv.ParseUint would do, but for its
// allocated error, which is not needed.
func parseNumber(s string) (n uint64, reason string) {
	if s == "" {
		return 0, "a number is missing"
	}
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > '9' {
			return 0, "not a number"
		}
		// Past 32 bits the digits are still checked, so that the reason
		// does not depend on where the odd one stands.
		if n <= math.MaxUint32 {
			n = n*10 + uint64(c-'0')
		}
	}
	if n > math.MaxUint32 { // an unsigned int in the kernel
		return 0, "the number is too large"
	}
	return n, ""
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
