// Package logsink keeps the log from stopping the server: a Writer takes lines and
// writes them from a goroutine of its own. A reader of stderr that stalls, such as a
// full pipe, would otherwise stall every request that logs, and the drain.
package logsink

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// maxLines is how many lines wait at most; further ones are dropped and counted.
const maxLines = 1024

// Writer is an io.Writer that never blocks. It is safe for concurrent use.
type Writer struct {
	out     io.Writer
	lines   chan []byte
	done    chan struct{}
	dropped atomic.Uint64

	mu     sync.RWMutex // held for reading while a line is sent
	closed bool
}

// New starts a Writer to out; Close ends it.
func New(out io.Writer) *Writer {
	w := &Writer{out: out, lines: make(chan []byte, maxLines), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for line := range w.lines {
			_, _ = out.Write(line) // there is nobody to tell
		}
	}()
	return w
}

// Write takes a copy of p, or drops it when too many wait or w is closed. It always
// reports success: whoever logs can do nothing about it.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if !w.closed {
		select {
		case w.lines <- append([]byte(nil), p...):
			return len(p), nil
		default:
		}
	}
	w.dropped.Add(1)
	return len(p), nil
}

// Dropped is how many writes were dropped.
func (w *Writer) Dropped() uint64 { return w.dropped.Load() }

// Close writes what waits, for at most the given time. Later writes are dropped.
func (w *Writer) Close(patience time.Duration) {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.lines)
	}
	w.mu.Unlock()
	select {
	case <-w.done:
	case <-time.After(patience):
	}
}
