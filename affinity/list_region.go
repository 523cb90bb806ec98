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

// scan calls add for the regions of a list in their order. It ends with a
// [*ParseError] at the first one that is wrong, or for which add returns a
// reason.
func scan(list string, add func(region) (reason string)) error {
	ended := false // a newline was seen
	for rest := list; ; {
		token := strings.TrimLeft(rest, separators)
		ended = ended || strings.Contains(rest[:len(rest)-len(token)], "\n")
		if token == "" {
			return nil
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
		if reason == "" {
			reason = add(r)
		}
		if reason != "" {
			return &ParseError{Token: token, Offset: offset, Reason: reason}
		}
	}
}

// lastCPU stands for "N" in a region: the largest CPU, whatever it is.
const lastCPU = math.MaxUint64

// region is one range of a list: its CPUs from start to end, or, if group is
// not 0, the first used of every group of them. 64 bits, because a group may
// be as long as the kernel's unsigned int allows.
type region struct {
	start, end  uint64 // either may be lastCPU
	used, group uint64
	all         bool // written "all": from 0 to lastCPU, and only what is allowed
}

// relative reports whether what r selects depends on the CPUs there are.
func (r region) relative() bool { return r.start == lastCPU || r.end == lastCPU }

// empty reports whether r selects nothing, whatever CPUs there are.
func (r region) empty() bool { return r.group != 0 && r.used == 0 }

// in returns r with the largest CPU of allowed for its N; ok is false where r
// is nothing without one.
func (r region) in(allowed Set) (_ region, ok bool) {
	last, ok := allowed.max()
	switch {
	case r.start == lastCPU: // and r.end, see parseRegion
		r.start, r.end = uint64(last), uint64(last)
		return r, ok
	case r.end == lastCPU:
		r.end = max(r.start, uint64(last))
	}
	return r, true
}

// addTo wants a region that is not relative.
func (r region) addTo(s *Set) {
	switch {
	case r.empty():
		return
	case r.group == 0:
		s.addRange(int(r.start), int(r.end))
		return
	}
	for lo := r.start; lo <= r.end; lo += r.group {
		s.addRange(int(lo), int(min(lo+r.used-1, r.end)))
	}
}

// append writes r so that parseRegion reads it back.
func (r region) append(dst []byte) []byte {
	number := func(n uint64) {
		if n == lastCPU {
			dst = append(dst, 'N')
			return
		}
		dst = strconv.AppendUint(dst, n, 10)
	}
	if r.all {
		dst = append(dst, "all"...)
	} else {
		number(r.start)
		// A pattern needs its range, even one of a single CPU.
		if r.end != r.start || r.group != 0 {
			dst = append(dst, '-')
			number(r.end)
		}
	}
	if r.group != 0 {
		dst = append(dst, ':')
		number(r.used)
		dst = append(dst, '/')
		number(r.group)
	}
	return dst
}

// parseRegion returns the reason why token is not a region, or "".
func parseRegion(token string) (r region, reason string) {
	span, pattern, hasPattern := strings.Cut(token, ":")
	start, end, isRange := strings.Cut(span, "-")
	if strings.EqualFold(span, "all") {
		r.all, isRange, start, end = true, true, "0", "N"
	}
	switch {
	case start == "" && isRange:
		return r, "the range has no start"
	case end == "" && isRange:
		return r, "the range has no end"
	case hasPattern && !isRange:
		return r, "a pattern needs a range before it"
	}

	if r.start, reason = parseCPU(start); reason != "" {
		return r, reason
	}
	r.end = r.start
	if isRange {
		if r.end, reason = parseCPU(end); reason != "" {
			return r, reason
		}
	}
	if hasPattern {
		if r.used, r.group, reason = parsePattern(pattern); reason != "" {
			return r, reason
		}
	}
	switch {
	case r.start > r.end: // "N-5" too: N is not known to be 5 or less
		return r, "the range is reversed"
	case r.start != lastCPU && r.start > MaxCPU, r.end != lastCPU && r.end > MaxCPU:
		return r, "CPU number above " + strconv.Itoa(MaxCPU)
	}
	return r, ""
}

// parseCPU reads a number or N.
func parseCPU(s string) (n uint64, reason string) {
	if s == "N" {
		return lastCPU, ""
	}
	return parseNumber(s)
}

func parsePattern(s string) (used, group uint64, reason string) {
	first, second, ok := strings.Cut(s, "/")
	if !ok {
		return 0, 0, "a pattern is written used/group, as 2/4"
	}
	if used, reason = parseNumber(first); reason != "" {
		return 0, 0, reason
	}
	if group, reason = parseNumber(second); reason != "" {
		return 0, 0, reason
	}
	switch {
	case group == 0:
		return 0, 0, "a group of 0 CPUs"
	case used > group:
		return 0, 0, "more CPUs used than the group has"
	}
	return used, group, ""
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
