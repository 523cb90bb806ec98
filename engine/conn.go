package engine

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
)

// States of a connection that the leader of its loop and the goroutine of an
// offloaded request share. A connection that is not busy belongs to the leader.
const (
	busy     uint32 = 1 << iota // a goroutine holds the connection
	woken                       // the kernel reported input meanwhile
	gone                        // the client closed or reset meanwhile
	finished                    // the client ended its sending side meanwhile
)

const (
	readBuffer = 64 << 10 // bytes read at once, one buffer a loop
	maxReads   = 2        // buffers read from one connection before others get a turn
	maxLinger  = 256 << 10
)

// conn is one connection. An idle one is this struct and an entry in epoll: no
// goroutine and no buffer. It is never reused, so a handler that outlived its
// answer cannot meet somebody else's connection through it.
type conn struct {
	loop *loop
	in   *input // a request that came in part, or that waits for its turn
	out  []byte // answers the client has not taken yet

	// What a wake-up for a busy connection needs; nil most of the time.
	cancel atomic.Pointer[context.CancelCauseFunc]
	drain  atomic.Pointer[chan struct{}] // told when the socket can be written to

	prev, next *conn // timers
	given      *conn // loop.given
	deadline   int64
	active     int64 // when the last request came
	addrs      *addresses

	requests uint32
	fd       int32
	slot     int32
	gen      uint32
	state    atomic.Uint32
	waiting  wait
	mark     mark
	bucket   int16 // of the wheel it waits in
	queued   bool  // in loop.todo or loop.backlog; the leader owns it
}

// mark is a set of facts about a connection; its holder owns them.
type mark uint8

const (
	closing    mark = 1 << iota // close when out is empty
	lingering                   // sending side ended, input is thrown away
	unread                      // input was left in the socket
	wanted                      // epoll reports when the socket can be written to
	broken                      // sending failed
	closed                      // not the loop's any more
	polite                      // input may be on its way: linger before the close
	halfClosed                  // the client has ended its sending side
)

func (c *conn) is(m mark) bool { return c.mark&m != 0 }

// addresses are the two ends of a connection, looked up when asked for.
type addresses struct {
	local, remote net.Addr
	counted       bool // in Server.perIP
}

// ip returns the address of the client, without zone.
func (a *addresses) ip() (netip.Addr, bool) {
	tcp, ok := a.remote.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, false
	}
	ip, ok := netip.AddrFromSlice(tcp.IP)
	return ip.Unmap(), ok
}

// receive takes bytes just read; without any it goes on with what was kept. It
// serves all complete requests and sends their answers together. It reports
// true when another goroutine leads the loop now: the caller must return and
// touch neither the loop nor the connection.
func (l *loop) receive(c *conn, data []byte) (lost bool) {
	l.output.conn = c
	b, f := data, &l.framing
	if c.in != nil {
		c.in.buf = append(c.in.buf, data...)
		b, f = c.in.buf, &c.in.framing
	} else {
		*f = framing{}
	}
	for len(b) > 0 {
		switch f.advance(b, &l.srv.limits) {
		case needMore:
			l.keep(c, b, f)
			l.flush(c)
			return false
		case askContinue:
			_, _ = l.bw.WriteString("HTTP/1.1 100 Continue\r\n\r\n")
			continue
		case promote:
			l.flush(c)
			switch {
			case c.is(closed):
			case len(c.out) > 0:
				l.hold(c, b) // until the answers before it are taken
			default:
				l.promote(c, b[f.start:])
			}
			return false
		case refuse:
			l.refuse(c, f.err, f.headBytes(b))
			return false
		case complete:
		}
		if l.serve(c, b, f) {
			return true
		}
		if c.is(closed) {
			return false
		}
		b, f = l.rest, &l.framing
		if c.in != nil {
			b, f = c.in.buf, &c.in.framing
		} else {
			*f = framing{}
		}
		if c.is(closing) {
			if len(b) > 0 {
				c.mark |= polite
			}
			break
		}
		if len(c.out) > 0 && len(b) > 0 {
			// The client does not take its answers: no more for now.
			l.hold(c, b)
			break
		}
	}
	l.flush(c)
	return false
}

// refuse answers a request that no handler will see and closes. head is the
// request's head, nil when it is incomplete or malformed: with it the error
// handler knows what is refused.
func (l *loop) refuse(c *conn, err *Error, head []byte) {
	x := l.take(c)
	if len(head) > 0 && l.parseHead(x, head) == nil {
		x.isHead = x.ctx.Request.Header.IsHead()
	}
	l.srv.answerError(x, l.bw, err)
	l.put(x)
	c.mark |= closing | polite
	l.flush(c)
}

// flush sends the answers made so far. It may close the connection.
func (l *loop) flush(c *conn) {
	_ = l.bw.Flush() // output never fails
	switch {
	case c.is(broken):
		l.drop(c)
	case len(c.out) > 0:
		l.stall(c)
	case c.is(closing):
		l.finish(c)
	}
}

// stall waits for the client to take what is in c.out.
func (l *loop) stall(c *conn) {
	if c.waiting != waitWrite {
		l.timers.set(c, waitWrite, l.now)
	}
	if !c.is(wanted) {
		c.mark |= wanted
		l.poller.want(int(c.fd), c.slot, c.gen)
	}
}

// finish closes after the last answer. When the client may still be sending,
// closing at once would reset the connection and could destroy the answer on
// its way (RFC 9112 section 9.6), so the loop listens for a while.
func (l *loop) finish(c *conn) {
	if !c.is(polite) || l.stopping == stopForced {
		l.drop(c)
		return
	}
	if c.is(lingering) {
		return
	}
	if l.sys.shutdown(int(c.fd)) != 0 {
		l.drop(c)
		return
	}
	c.mark |= lingering
	c.active = 0 // counts what is thrown away
	if c.in != nil {
		l.dropInput(c)
	}
	l.timers.set(c, waitLinger, l.now)
	l.again(c)
}

// ready handles an event of a connection that the leader holds.
func (l *loop) ready(c *conn, r readiness) (lost bool) {
	if r&(halfShut|hungUp) != 0 {
		c.mark |= halfClosed
	}
	if len(c.out) > 0 {
		if r&(readable|halfShut) != 0 {
			c.mark |= unread
		}
		if r&(writable|hungUp) == 0 {
			return false
		}
		if !l.drained(c) {
			return false
		}
		if c.is(unread) {
			r |= readable | halfShut
		}
		if c.in != nil {
			if l.receive(c, nil) {
				return true
			}
			if c.is(closed) || len(c.out) > 0 {
				return false
			}
		}
	}
	if r&(readable|halfShut|hungUp) == 0 {
		return false
	}
	return l.read(c, r&(halfShut|hungUp) != 0)
}

// drained sends c.out and reports whether all of it went and the connection
// goes on.
func (l *loop) drained(c *conn) bool {
	for len(c.out) > 0 {
		n, errno := l.sys.send(int(c.fd), c.out)
		switch errno {
		case 0:
			c.out = c.out[n:]
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false
		default:
			l.drop(c)
			return false
		}
	}
	c.out = nil
	if c.is(closing) {
		l.finish(c)
		return false
	}
	l.timers.set(c, waitIdle, l.now)
	return true
}

// read empties the socket. A read that does not fill the buffer has emptied it,
// unless the end of the stream is also there (ends). While there may be more,
// the connection is marked unread, so that it gets another look when the
// request just read takes it away from the loop.
func (l *loop) read(c *conn, ends bool) (lost bool) {
	c.mark |= unread
	for range maxReads {
		n, errno := l.sys.recv(int(c.fd), l.buf)
		switch {
		case errno == syscall.EAGAIN:
			c.mark &^= unread
			return false
		case errno == syscall.EINTR:
			continue
		case errno != 0:
			l.drop(c)
			return false
		case n == 0:
			l.ended(c)
			return false
		}
		if n < len(l.buf) && !ends {
			c.mark &^= unread
		}
		if c.is(lingering) {
			if c.active += int64(n); c.active > maxLinger {
				l.drop(c)
				return false
			}
		} else if l.receive(c, l.buf[:n]) {
			return true
		}
		if c.is(closed) || !c.is(unread) || len(c.out) > 0 {
			return false
		}
	}
	l.again(c)
	return false
}

// ended handles the end of the client's stream. A client that half-closes
// after its request has its answer by now, or gets it from the goroutine that
// holds the connection.
func (l *loop) ended(c *conn) {
	if c.in == nil || c.is(lingering) || c.in.framing.empty() {
		l.drop(c)
		return
	}
	l.output.conn = c
	l.refuse(c, errTruncated, c.in.framing.headBytes(c.in.buf))
	if !c.is(closed) && c.is(lingering) {
		l.drop(c)
	}
}

// resume looks at a connection that was given back or left for later.
func (l *loop) resume(c *conn) (lost bool) {
	switch {
	case c.state.Load()&busy != 0:
		return false // it comes back with giveBack
	case c.is(closed):
		return false
	case c.is(broken):
		l.drop(c)
		return false
	case len(c.out) > 0:
		if l.stopping == stopForced {
			l.drop(c)
			return false
		}
		c.mark |= unread // there may be; nobody looked while c was away
		l.stall(c)
		return l.ready(c, writable)
	case c.is(closing) && !c.is(lingering):
		if c.is(unread) || c.in != nil {
			c.mark |= polite
		}
		l.finish(c)
		return false
	}
	c.mark |= unread
	if c.in != nil && !c.is(lingering) {
		if l.receive(c, nil) {
			return true
		}
		if c.is(closed) || len(c.out) > 0 {
			return false
		}
	}
	if l.read(c, true) {
		return true
	}
	if !c.is(closed) && !c.queued && l.stopping != running && c.in == nil && len(c.out) == 0 && !c.is(lingering) {
		l.drop(c)
	}
	return false
}

// drop closes the connection now.
func (l *loop) drop(c *conn) {
	if c.is(closed) {
		return
	}
	_ = l.sys.close(int(c.fd))
	l.remove(c)
	l.srv.release(c.addrs)
}

// remove takes the connection out of the loop.
func (l *loop) remove(c *conn) {
	c.mark |= closed
	l.timers.clear(c)
	if c.in != nil {
		l.dropInput(c)
	}
	c.out = nil
	l.conns[c.slot] = nil
	l.slots = append(l.slots, c.slot)
	l.open--
	l.resumeAccept()
}

// hangUp ends the context of the request in progress, if it has one.
func (c *conn) hangUp(cause error) {
	if cancel := c.cancel.Load(); cancel != nil {
		(*cancel)(cause)
	}
}
