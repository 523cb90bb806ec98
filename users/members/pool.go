package members

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// bufferSize is also the limit of an answer's head, in bytes.
const bufferSize = 16 << 10

// pool keeps connections. Open ones are never more than its slots: whoever uses one
// holds a slot, and dials only when none is idle.
type pool struct {
	dial  func(ctx context.Context) (net.Conn, error)
	slots chan struct{} // full: all are taken
	idle  time.Duration // after which a kept connection is not used again
	done  chan struct{} // closed by close

	mu    sync.Mutex
	kept  []*conn // least recently used first
	inUse map[*conn]struct{}
	ended bool
}

type conn struct {
	net.Conn
	r      *bufio.Reader
	reused bool
	since  time.Time // of being kept
}

// quiet reports whether the connection is open and nothing waits to be read from it.
// Between two requests there is nothing to say: what came is a surplus answer, or the end
// of the connection. It does not block, and leaves what it finds.
func (c *conn) quiet() bool {
	type layer interface{ NetConn() net.Conn } // tls.Conn, for one
	if c.r.Buffered() > 0 {
		return false
	}
	socket := c.Conn
	over, layered := socket.(layer)
	for ok := layered; ok; over, ok = socket.(layer) {
		socket = over.NetConn()
	}
	if !silent(socket) {
		return false
	}
	if !layered {
		return true
	}
	// TLS may have read ahead. A read past its deadline returns what is there already,
	// and does not get as far as the socket.
	if c.SetReadDeadline(time.Unix(1, 0)) != nil {
		return false
	}
	_, err := c.r.Peek(1)
	return errors.Is(err, os.ErrDeadlineExceeded) && c.SetReadDeadline(time.Time{}) == nil
}

func newPool(size int, idle time.Duration, dial func(ctx context.Context) (net.Conn, error)) *pool {
	return &pool{
		dial:  dial,
		slots: make(chan struct{}, size),
		idle:  idle,
		done:  make(chan struct{}),
		inUse: make(map[*conn]struct{}),
	}
}

// enter takes a slot. The caller must leave.
func (p *pool) enter(ctx context.Context) error {
	select { // a closed pool has free slots too
	case <-p.done:
		return ErrClosed
	default:
	}
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.done:
		return ErrClosed
	}
}

func (p *pool) leave() { <-p.slots }

// get returns a kept connection or a new one. The caller holds a slot and must keep or
// drop the connection.
func (p *pool) get(ctx context.Context) (*conn, error) {
	for {
		c, err := p.take()
		switch {
		case err != nil:
			return nil, err
		case c == nil:
			return p.open(ctx)
		case c.quiet():
			return c, nil
		}
		p.drop(c)
	}
}

// take returns a kept connection, or nil.
func (p *pool) take() (*conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, ErrClosed
	}
	p.expire(time.Now())
	last := len(p.kept) - 1
	if last < 0 {
		return nil, nil
	}
	c := p.kept[last]
	p.kept[last] = nil
	p.kept = p.kept[:last]
	c.reused = true
	p.inUse[c] = struct{}{}
	return c, nil
}

// expire closes what has been kept for too long. The caller holds mu.
func (p *pool) expire(now time.Time) {
	n := 0
	for n < len(p.kept) && now.Sub(p.kept[n].since) > p.idle {
		_ = p.kept[n].Close()
		n++
	}
	p.kept = slices.Delete(p.kept, 0, n)
}

// open returns a new connection.
func (p *pool) open(ctx context.Context) (*conn, error) {
	nc, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, r: bufio.NewReaderSize(nc, bufferSize)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		_ = nc.Close()
		return nil, ErrClosed
	}
	p.inUse[c] = struct{}{}
	return c, nil
}

// keep takes back a connection that may be used again.
func (p *pool) keep(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.inUse, c)
	if p.ended {
		_ = c.Close()
		return
	}
	c.since = time.Now()
	p.expire(c.since) // a last long request may find the others long expired
	p.kept = append(p.kept, c)
}

// drop closes a connection.
func (p *pool) drop(c *conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.inUse, c)
}

// dropKept closes all connections that nobody uses.
func (p *pool) dropKept() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.kept {
		_ = c.Close()
	}
	p.kept = nil
}

// close closes all connections, those in use too, and sends the waiting ones away.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	close(p.done)
	for _, c := range p.kept {
		_ = c.Close()
	}
	for c := range p.inUse {
		_ = c.Close()
	}
	p.kept = nil
}
