package rediscache

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// dialer makes connections, and knows those that are open.
type dialer struct {
	endpoint endpoint
	tls      *tls.Config // nil: none
	timeout  time.Duration

	mu     sync.Mutex
	open   map[*conn]struct{}
	closed bool
}

func newDialer(e endpoint, cfg *tls.Config, timeout time.Duration) *dialer {
	d := &dialer{endpoint: e, timeout: timeout, open: make(map[*conn]struct{})}
	if e.host != "" {
		if cfg == nil {
			cfg = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		d.tls = cfg.Clone()
		if d.tls.ServerName == "" {
			d.tls.ServerName = e.host
		}
	}
	return d
}

// dial connects. With pushes the connection may receive invalidations. ended, unless it
// is nil, is called once, when nothing more can be read.
func (d *dialer) dial(ctx context.Context, pushes bool, ended func()) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	nd := &net.Dialer{KeepAlive: 15 * time.Second}
	var nc net.Conn
	var err error
	if d.tls != nil {
		nc, err = (&tls.Dialer{NetDialer: nd, Config: d.tls}).DialContext(ctx, d.endpoint.network, d.endpoint.addr)
	} else {
		nc, err = nd.DialContext(ctx, d.endpoint.network, d.endpoint.addr)
	}
	if err != nil {
		return nil, err
	}
	if ended == nil {
		ended = func() {}
	}
	c := &conn{Conn: nc, dialer: d, ended: sync.OnceFunc(ended), replies: framing{pushes: pushes}}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = nc.Close()
		return nil, ErrClosed
	}
	d.open[c] = struct{}{}
	return c, nil
}

// closeAll closes the open connections; what waits on them then fails at once.
func (d *dialer) closeAll() {
	d.mu.Lock()
	all := make([]*conn, 0, len(d.open))
	for c := range d.open {
		all = append(all, c)
	}
	d.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}

// end closes the open connections and allows no more.
func (d *dialer) end() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.closeAll()
}

// conn lets only such replies through as Redis could have sent: as many as there were
// commands, in proper framing. As net.Conn allows, one goroutine may read while another
// writes.
type conn struct {
	net.Conn
	dialer *dialer
	ended  func()

	commands framing
	sent     atomic.Int64
	replies  framing
	received int64
}

// Write counts the commands, which are RESP arrays.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.commands.feed(b)
	if err != nil {
		return 0, err
	}
	c.sent.Add(int64(n)) // before the server can answer
	return c.Conn.Write(b)
}

// Read passes on what belongs to a reply. When it fails once, it fails for good.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	complete, wrong := c.replies.feed(b[:n])
	c.received += int64(complete)
	if wrong == nil && c.received > c.sent.Load() {
		wrong = fmt.Errorf("%w: a reply without a command", ErrProtocol)
	}
	if wrong != nil {
		_ = c.Close()
		n, err = 0, wrong
	}
	if err != nil {
		c.ended()
	}
	return n, err
}

// Close closes the connection.
func (c *conn) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.open, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}
