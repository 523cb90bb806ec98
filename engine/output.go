package engine

import (
	"bufio"
	"syscall"
)

const (
	writeBuffer = 32 << 10 // answers of one wake-up are collected up to this
)

// output sends to a connection without waiting. What the socket does not take
// stays in conn.out, bounded by the write buffer and one answer: a connection that has
// anything there gets no further requests served.
type output struct {
	sys  *system
	conn *conn
}

// Write never fails: a connection that cannot be sent to is marked broken.
func (o *output) Write(p []byte) (int, error) {
	c := o.conn
	if c.is(broken) {
		return len(p), nil
	}
	if len(c.out) > 0 {
		c.out = append(c.out, p...)
		return len(p), nil
	}
	sent := 0
	for sent < len(p) {
		n, errno := o.sys.send(int(c.fd), p[sent:])
		switch errno {
		case 0:
			sent += n
		case syscall.EINTR:
		case syscall.EAGAIN:
			c.out = append([]byte(nil), p[sent:]...)
			return len(p), nil
		default:
			c.mark |= broken
			return len(p), nil
		}
	}
	return len(p), nil
}

// writer is a buffered output that a goroutine borrows for one answer.
type writer struct {
	output
	buf *bufio.Writer
}

func newWriter(sys *system) *writer {
	w := &writer{output: output{sys: sys}}
	w.buf = bufio.NewWriterSize(&w.output, writeBuffer)
	return w
}
