package codec

import "unsafe"

// StringView returns the bytes of b as a string without copying them. The
// string is valid only while b is not written to.
func StringView(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// BytesView returns the bytes of s without copying them. They must never be
// written to: a constant's bytes lie in read-only memory, and a write to them
// ends the process.
func BytesView(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// view returns the bytes of s, of whichever kind it is, without copying them.
// They must not be written to. A slice starts with the two words a string
// consists of, so either can be read as a string.
func view[T ~string | ~[]byte](s T) []byte {
	return BytesView(*(*string)(unsafe.Pointer(&s)))
}
