package members

import (
	"bufio"
	"context"
	"net"
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
	if c, err := p.take(); c != nil || err != nil {
		return c, err
	}
	return p.open(ctx)
}

// take returns a kept connection, or nil.
func (p *pool) take() (*conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, ErrClosed
	}
	now := time.Now()
	for len(p.kept) > 0 && now.Sub(p.kept[0].since) > p.idle {
		_ = p.kept[0].Close()
		p.kept = p.kept[1:]
	}
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
