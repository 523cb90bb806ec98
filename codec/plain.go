package codec

import (
	"encoding/binary"
	"math/bits"
)

// plainEnd returns the index of the first byte of b at or after i that is not
// plain, or len(b). Plain bytes stand for themselves inside a JSON string and
// need no look at their neighbours: ASCII from the space up, DEL included,
// without the quote and the backslash.
//
// It looks at eight bytes at a time; BenchmarkAppendString shows the gain.
func plainEnd(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		if found := notPlain(binary.LittleEndian.Uint64(b[i:])); found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	rest := len(b) - i
	if rest > 0 && len(b) >= 8 {
		// Read the last eight bytes and shift out those before i. The zeros
		// that come in behind the rest are not plain, and so mark the end.
		w := binary.LittleEndian.Uint64(b[len(b)-8:]) >> (8 * (8 - rest))
		return i + bits.TrailingZeros64(notPlain(w))/8
	}
	for i < len(b) && isPlain(b[i]) {
		i++
	}
	return i
}

// notPlain sets the top bit of the lowest byte of w that is not plain, and
// possibly bits above it; without such a byte it is 0. A subtraction borrows
// into the bytes above only from a byte that has failed itself, so the lowest
// set bit is never wrong.
func notPlain(w uint64) uint64 {
	const (
		ones    = 0x0101010101010101
		tops    = 0x80 * ones
		spaces  = ' ' * ones
		quotes  = '"' * ones
		escapes = '\\' * ones
	)
	return (w | (w - spaces) | ((w ^ quotes) - ones) | ((w ^ escapes) - ones)) & tops
}

func isPlain(c byte) bool {
	return c >= ' ' && c < 0x80 && c != '"' && c != '\\'
}
