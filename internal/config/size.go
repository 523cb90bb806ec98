package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes. It implements flag.Value.
type Size int64

// Units of Size.
const (
	KiB Size = 1 << (10 * (iota + 1))
	MiB
	GiB
	TiB
)

type unit struct {
	name  string
	bytes Size
}

// units are those of IEC 80000-13 and of the SI, and B. A lone K or M is not among
// them: half the world means the one and half the other.
func units() []unit {
	return []unit{
		{"TiB", TiB},
		{"GiB", GiB},
		{"MiB", MiB},
		{"KiB", KiB},
		{"TB", 1e12},
		{"GB", 1e9},
		{"MB", 1e6},
		{"KB", 1e3},
		{"B", 1}, // the last one: the others end in it
	}
}

// ParseSize reads a whole number of bytes in plain digits, with or without one of the
// units B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB and TiB (powers of 1024) in
// any case: 256MiB, 64mb, 4096.
func ParseSize(s string) (Size, error) {
	digits, factor := s, Size(1)
	for _, u := range units() {
		if i := len(s) - len(u.name); i > 0 && strings.EqualFold(s[i:], u.name) {
			digits, factor = s[:i], u.bytes
			break
		}
	}
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			digits = "" // ParseInt takes a sign
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil && digits == "" {
		return 0, fmt.Errorf("want a size such as 256MiB, 64MB or 4096, got %q", s)
	}
	if err != nil || n > math.MaxInt64/int64(factor) {
		return 0, fmt.Errorf("%q is more than 64 bits can count", s)
	}
	return Size(n) * factor, nil
}

// String is the size in the largest unit of 1024 that divides it. ParseSize reads it.
func (s Size) String() string {
	if s == 0 {
		return "0"
	}
	for _, u := range units() {
		if strings.HasSuffix(u.name, "iB") && s%u.bytes == 0 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
