package ctxpool_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/valyala/bytebufferpool"

	"pinion/ctxpool"
)

func TestBuffersAreEmpty(t *testing.T) {
	var b ctxpool.Buffers
	for range 100 {
		for _, lend := range []func() *bytebufferpool.ByteBuffer{b.Small, b.Large} {
			buf := lend()
			if buf.Len() != 0 {
				t.Fatalf("a buffer of %d bytes", buf.Len())
			}
			buf.B = append(buf.B, "some bytes"...)
			b.Put(buf)
		}
	}
	b.Put(nil)
}

// TestBuffersClasses checks that what grew large never comes back as small.
func TestBuffersClasses(t *testing.T) {
	var b ctxpool.Buffers
	for _, size := range []int{1, ctxpool.MaxSmall, ctxpool.MaxSmall + 1, ctxpool.MaxLarge, ctxpool.MaxLarge + 1} {
		for range 20 { // a race build's sync.Pool drops some
			buf := b.Small()
			buf.B = make([]byte, size)
			b.Put(buf)
		}
		for range 20 {
			if small := b.Small(); cap(small.B) > ctxpool.MaxSmall {
				t.Fatalf("a small buffer of %d bytes", cap(small.B))
			}
			if large := b.Large(); cap(large.B) > ctxpool.MaxLarge {
				t.Fatalf("a large buffer of %d bytes", cap(large.B))
			}
		}
	}
}

func TestBuffersConcurrently(t *testing.T) {
	var b ctxpool.Buffers
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			want := bytes.Repeat([]byte{byte(g)}, 100)
			for range 500 {
				buf := b.Small()
				buf.B = append(buf.B, want...)
				if !bytes.Equal(buf.B, want) {
					t.Error("another user wrote into the buffer")
					return
				}
				b.Put(buf)
			}
		})
	}
	wg.Wait()
}
