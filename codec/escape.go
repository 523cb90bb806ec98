package codec

import (
	"unicode/utf16"
	"unicode/utf8"
)

// longestEscape is the length of \u1234.
const longestEscape = 6

// escapeLen returns the length of the escape b starts with, both halves of a
// surrogate pair included, or a reason why it is none. b is a backslash and at
// least one byte more.
func escapeLen(b []byte) (n int, reason string) {
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, ""
	case 'u':
	default:
		return 0, "unknown escape \\ before " + quoteByte(b[1])
	}
	first, ok := hexEscape(b)
	if !ok {
		return 0, `\u without four hexadecimal digits`
	}
	if !utf16.IsSurrogate(first) {
		return longestEscape, ""
	}
	second, ok := hexEscape(b[longestEscape:])
	if !ok || utf16.DecodeRune(first, second) == utf8.RuneError {
		return 0, "lone surrogate"
	}
	return 2 * longestEscape, ""
}

// hexEscape reads the \u1234 that b starts with. It returns a single UTF-16
// unit, which may be half of a pair.
func hexEscape(b []byte) (unit rune, ok bool) {
	if len(b) < longestEscape || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:longestEscape] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		unit = unit<<4 | rune(c)
	}
	return unit, true
}

// appendUnescaped appends the text of a string that was written as raw, which
// the scanner has accepted.
func appendUnescaped(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			dst = append(dst, raw[i])
			i++
			continue
		}
		switch c := raw[i+1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, _ := hexEscape(raw[i:])
			i += longestEscape
			if utf16.IsSurrogate(r) {
				second, _ := hexEscape(raw[i:])
				r = utf16.DecodeRune(r, second)
				i += longestEscape
			}
			dst = utf8.AppendRune(dst, r)
			continue
		default:
			dst = append(dst, c)
		}
		i += 2
	}
	return dst
}
