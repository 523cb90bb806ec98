package logsink

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWritesInOrder(t *testing.T) {
	var out bytes.Buffer
	w := New(&out)
	var want bytes.Buffer
	line := []byte("line 0\n")
	for i := range 100 {
		line = fmt.Appendf(line[:0], "line %d\n", i) // the writer must have its own copy
		want.Write(line)
		if n, err := w.Write(line); n != len(line) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	w.Close(10 * time.Second)
	if out.String() != want.String() || w.Dropped() != 0 {
		t.Errorf("%d dropped, got %q", w.Dropped(), out.String())
	}
	if n, err := w.Write(line); n != len(line) || err != nil || w.Dropped() != 1 {
		t.Errorf("after Close: %d, %v, %d dropped", n, err, w.Dropped())
	}
}

// TestStalled writes to a reader that does not read: nobody waits, what is too
// much is counted, and Close gives up.
func TestStalled(t *testing.T) {
	r, pipe := io.Pipe()
	w := New(pipe)
	var wg sync.WaitGroup
	const writers, each = 8, 1000
	for range writers {
		wg.Go(func() {
			for range each {
				if _, err := io.WriteString(w, "x\n"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait() // or the test times out
	w.Close(time.Millisecond)
	if d := w.Dropped(); d < writers*each-maxLines-1 || d > writers*each-maxLines {
		t.Errorf("%d dropped of %d, the sink holds %d", d, writers*each, maxLines)
	}
	_ = r.Close() // lets the goroutine go
	<-w.done
}
