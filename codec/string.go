package codec

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// AppendString appends s as a quoted JSON string, byte for byte what
// encoding/json writes with SetEscapeHTML(false): the quote, the backslash and
// control characters escaped, in the short form where there is one; U+2028 and
// U+2029 escaped, because JavaScript once took them for line ends; each byte
// that is not part of valid UTF-8 replaced by \ufffd.
func AppendString[T ~string | ~[]byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	// Copy first and look at the copy: it is a byte slice whatever T is, and
	// nearly always it is also the answer.
	start := len(dst)
	dst = append(dst, s...)
	if done := plainEnd(dst, start) - start; done < len(s) {
		dst = appendEscaped(dst[:start+done], s[done:])
	}
	return append(dst, '"')
}

// appendEscaped appends s, escaping where needed. The array behind dst may hold
// a copy of s, never s itself.
func appendEscaped[T ~string | ~[]byte](dst []byte, s T) []byte {
	done := 0 // s[:done] is in dst
	for i := 0; i < len(s); {
		c := s[i]
		if isPlain(c) {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := decodeRune(s[i:])
			switch {
			case r == utf8.RuneError && size == 1:
				dst = append(dst, s[done:i]...)
				dst = append(dst, `\ufffd`...)
				done = i + size
			case r == '\u2028' || r == '\u2029':
				dst = append(dst, s[done:i]...)
				dst = append(dst, '\\', 'u', '2', '0', '2', hexDigits[r&0xf])
				done = i + size
			}
			i += size
			continue
		}
		dst = append(dst, s[done:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
		}
		i++
		done = i
	}
	return append(dst, s[done:]...)
}

// decodeRune decodes the first rune of s. Converting no more than one rune's
// bytes keeps the conversion on the stack for either kind of T.
func decodeRune[T ~string | ~[]byte](s T) (rune, int) {
	if len(s) > utf8.UTFMax {
		s = s[:utf8.UTFMax]
	}
	return utf8.DecodeRuneInString(string(s))
}
