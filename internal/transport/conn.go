package transport

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A client that is still sending when its connection is closed gets a reset,
// which may overtake the answer (RFC 9112, section 9.6). After an error answer
// we close our side, then read on until the client has closed its own, for so
// long and so much.
const (
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 1 << 20
)

// conn is a connection that its tracker knows.
type conn struct {
	net.Conn
	conns  *tracker
	linger atomic.Bool
	closed atomic.Bool
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	if !c.closed.CompareAndSwap(false, true) {
		return net.ErrClosed
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.linger.Load() {
		if half.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
			// Whatever ends the reading, closing is next.
			_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
		}
	}
	c.conns.remove(c)
	return c.Conn.Close()
}

// tracker holds the open connections, for the end of a shutdown.
type tracker struct {
	mu   sync.Mutex
	open map[*conn]struct{}
}

func newTracker() *tracker { return &tracker{open: make(map[*conn]struct{})} }

func (t *tracker) add(nc net.Conn) *conn {
	c := &conn{Conn: nc, conns: t}
	t.mu.Lock()
	t.open[c] = struct{}{}
	t.mu.Unlock()
	return c
}

func (t *tracker) remove(c *conn) {
	t.mu.Lock()
	delete(t.open, c)
	t.mu.Unlock()
}

func (t *tracker) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

// closeAll cuts off every connection without lingering and says how many.
func (t *tracker) closeAll() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.open {
		_ = c.Conn.Close() // its owner meets the error on its next call
	}
	return len(t.open)
}
