package codec

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// AppendString appends s as a quoted JSON string, byte for byte what
// encoding/json writes with SetEscapeHTML(false): the quote, the backslash and
// control characters escaped, in the short form where there is one; U+2028 and
// U+2029 escaped, because JavaScript once took them for line ends; each byte
// that is not part of valid UTF-8 replaced by \ufffd. It must not lie in the
// spare capacity of dst.
func AppendString[T ~string | ~[]byte](dst []byte, s T) []byte {
	return appendString(dst, view(s))
}

func appendString(dst, src []byte) []byte {
	dst = append(dst, '"')
	done := 0 // src[:done] is in dst
	for i := plainEnd(src, 0); i < len(src); i = plainEnd(src, i) {
		c := src[i]
		if c >= utf8.RuneSelf {
			end := validEnd(src, i)
			if end > i {
				i = end
				continue
			}
			r, size := utf8.DecodeRune(src[i:])
			dst = append(dst, src[done:i]...)
			if r == utf8.RuneError {
				dst = append(dst, `\ufffd`...)
			} else {
				dst = append(dst, '\\', 'u', '2', '0', '2', hexDigits[r&0xf])
			}
			i += size
			done = i
			continue
		}
		dst = append(dst, src[done:i]...)
		dst = appendEscape(dst, c)
		i++
		done = i
	}
	dst = append(dst, src[done:]...)
	return append(dst, '"')
}

// validEnd returns the end of the runes from i on that are not ASCII and stand
// for themselves in a string. It is i if there is none.
func validEnd(src []byte, i int) int {
	for i < len(src) && src[i] >= utf8.RuneSelf {
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size == 1 || r == '\u2028' || r == '\u2029' {
			break
		}
		i += size
	}
	return i
}

// appendEscape appends the escape of a quote, a backslash or a control character.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	default:
		return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
	}
}
