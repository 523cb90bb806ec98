package codec

import "math"

// ParseID reads a positive 64-bit id in plain digits: no sign, no space and no
// leading zero, so that each id has one spelling only. For anything else,
// numbers above [math.MaxInt64] included, ok is false and id is 0.
func ParseID(s []byte) (id int64, ok bool) {
	const longest = len("9223372036854775807")
	if len(s) == 0 || len(s) > longest || s[0] == '0' {
		return 0, false
	}
	var n uint64 // 19 digits cannot overflow 64 bits without a sign
	for _, c := range s {
		digit := c - '0'
		if digit > 9 {
			return 0, false
		}
		n = n*10 + uint64(digit)
	}
	if n > math.MaxInt64 {
		return 0, false
	}
	return int64(n), true
}
