//go:build race

package ctxpool

// poison is a byte that is neither text, nor valid UTF-8 in a row, nor zero.
const poison = 0xDB

// Poison overwrites b up to its capacity in a race build, and does nothing in
// any other. A pool's reset calls it on bytes that are about to rest, so that
// a view of them kept too long shows in a test. B must own all its capacity.
func Poison(b []byte) {
	b = b[:cap(b)]
	for i := range b {
		b[i] = poison
	}
}
