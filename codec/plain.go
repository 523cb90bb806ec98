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
// It looks at eight bytes at a time. Each test raises the top bit of a byte
// that fails it; a subtraction may borrow into the bytes above, but only from
// one that has failed, so the lowest raised bit is always true.
// BenchmarkAppendString has the gain.
func plainEnd(b []byte, i int) int {
	const (
		ones    = 0x0101010101010101
		tops    = 0x80 * ones
		spaces  = ' ' * ones
		quotes  = '"' * ones
		escapes = '\\' * ones
	)
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		failed := (w | (w - spaces) | ((w ^ quotes) - ones) | ((w ^ escapes) - ones)) & tops
		if failed != 0 {
			return i + bits.TrailingZeros64(failed)/8
		}
	}
	for ; i < len(b); i++ {
		if !isPlain(b[i]) {
			break
		}
	}
	return i
}

func isPlain(c byte) bool {
	return c >= ' ' && c < 0x80 && c != '"' && c != '\\'
}
