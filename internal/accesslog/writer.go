package accesslog

import (
	"bytes"
	"io"
	"log/slog"
	"runtime"
	"time"

	"pinion/internal/stats"
)

// run writes until the ring is closed and empty.
func (l *Log) run() {
	defer close(l.done)
	timer := time.NewTimer(0)
	if !timer.Stop() {
		<-timer.C
	}
	batch := make([]byte, 0, l.batch)
	for {
		l.await(timer)
		closed := l.ring.tail.Load()&closedBit != 0
		for more := true; more; {
			batch, more = l.gather(batch[:0])
			if len(batch) > 0 {
				l.writer.write(batch)
			}
		}
		if !closed {
			continue
		}
		if l.ring.head == l.ring.tail.Load()&^closedBit {
			return
		}
		// A line is claimed and not yet published: its producer is about to.
		runtime.Gosched()
		l.poke()
	}
}

// await returns when lines have been gathering for a while, when the ring is filling
// up, or when it is closed.
func (l *Log) await(timer *time.Timer) {
	// The order matters: a producer publishes and then looks at idle, so either it sees
	// that we sleep or we see its line.
	l.idle.Store(true)
	if l.ring.empty() {
		<-l.wake
	}
	l.idle.Store(false)
	if l.ring.tail.Load()&closedBit != 0 {
		return
	}
	timer.Reset(linger)
	select {
	case <-timer.C:
	case <-l.wake:
		timer.Stop()
	}
}

// gather appends lines to batch until the next one would make it too large or the ring
// is empty, and reports whether there may be more.
func (l *Log) gather(batch []byte) (_ []byte, more bool) {
	for {
		line, ok := l.ring.next()
		if !ok {
			return batch, false
		}
		if len(batch) > 0 && len(batch)+len(line) > l.batch {
			return batch, true
		}
		batch = append(batch, line...)
		l.ring.drop()
	}
}

// writer writes batches and keeps the books.
type writer struct {
	out     io.Writer
	log     *slog.Logger
	written *stats.Counter
	failed  *stats.Counter
	dropped *stats.Counter

	torn     bool      // the output ends within a line
	told     bool      // it was reported that writes fail
	toldWhen time.Time // when that was last reported
}

// tellEvery keeps an output that fails every other time from filling the log.
const tellEvery = time.Minute

// write writes a batch of whole lines and counts each as written or dropped. It does
// not try a failed write again: that could only delay the next lines.
func (w *writer) write(batch []byte) {
	n, err := w.try(batch)
	w.written.Add(0, uint64(bytes.Count(batch[:n], []byte{'\n'})))
	if err == nil {
		if w.told {
			w.told = false
			w.log.Info("access log is written again", "dropped", w.dropped.Value())
		}
		return
	}
	w.dropped.Add(0, uint64(bytes.Count(batch[n:], []byte{'\n'})))
	w.failed.Add(0, 1)
	if !w.told && (w.toldWhen.IsZero() || time.Since(w.toldWhen) >= tellEvery) {
		w.told, w.toldWhen = true, time.Now()
		w.log.Warn("access log cannot be written", "error", err)
	}
}

// try returns how much of batch was written.
func (w *writer) try(batch []byte) (int, error) {
	if w.torn {
		// End the broken line, or the next one is broken too.
		if _, err := w.out.Write([]byte{'\n'}); err != nil {
			return 0, err
		}
		w.torn = false
	}
	n, err := w.out.Write(batch)
	n = min(max(n, 0), len(batch)) // an io.Writer may be wrong
	if err == nil && n < len(batch) {
		err = io.ErrShortWrite
	}
	if n > 0 {
		w.torn = batch[n-1] != '\n'
	}
	return n, err
}
