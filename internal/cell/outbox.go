package cell

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

// message is one packet to be written. Packets are not changed once they were put.
type message struct {
	packet []byte
	stream *stream // goes along with kindStream
}

// stream is one end of a connection on its way to a cell.
type stream struct {
	file *os.File
	sent chan error // gets one value; has room for it
}

// finish lets go of the file, which the cell has a duplicate of if err is nil.
func (s *stream) finish(err error) {
	_ = s.file.Close() // nothing was written to it
	s.sent <- err
}

// outbox lets any goroutine send without waiting: what is put is written in that
// order by run.
type outbox struct {
	wake chan struct{} // has room for one
	done chan struct{} // closed by close

	mu     sync.Mutex // never held while something is written
	queue  []message
	closed bool
}

func newOutbox() *outbox {
	return &outbox{wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// put queues m; it reports false, and does not own m's stream, if o is closed.
func (o *outbox) put(m message) bool {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return false
	}
	o.queue = append(o.queue, m)
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
	return true
}

// withdraw takes a stream back that has not been written yet. One that is being
// written is finished by run.
func (o *outbox) withdraw(s *stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, m := range o.queue {
		if m.stream == s {
			o.queue = append(o.queue[:i], o.queue[i+1:]...)
			_ = s.file.Close() // nobody waits for it any more
			return
		}
	}
}

func (o *outbox) take() (m message, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.queue) == 0 {
		o.queue = nil // do not keep the room of a burst
		return message{}, false
	}
	m = o.queue[0]
	o.queue[0] = message{}
	o.queue = o.queue[1:]
	return m, true
}

// run writes to c until close, or until writing fails for another reason than that
// the other end is gone, which whoever receives finds out.
func (o *outbox) run(c *control) error {
	for {
		for m, ok := o.take(); ok; m, ok = o.take() {
			if m.stream != nil {
				// It may fail by itself, for want of descriptors.
				m.stream.finish(c.send(m.packet, m.stream.file))
				continue
			}
			err := c.send(m.packet, nil)
			if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
				break
			}
			if err != nil {
				return err
			}
		}
		select {
		case <-o.wake:
		case <-o.done:
			return nil
		}
	}
}

// close drops what was not written and ends run, once c no longer blocks it.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.closed = true
	close(o.done)
	for _, m := range o.queue {
		if m.stream != nil {
			m.stream.finish(ErrNotRunning)
		}
	}
	o.queue = nil
}
