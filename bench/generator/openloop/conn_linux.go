package openloop

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

type state uint8

const (
	down       state = iota // no socket; try again at conn.at
	connecting              // since conn.at
	idle                    // since conn.at
	flying                  // a request is out, since conn.at
)

// conn is a connection, and the request that is on it.
type conn struct {
	group  *group
	reader reader
	number int32 // in the loop
	fd     int
	state  state
	// listed says that it is in the group's ring, perhaps in another state meanwhile.
	listed bool
	// refused says that nobody listened the last time it connected, and served that the
	// connection has had an answer.
	refused, served bool

	sent int           // bytes of the request
	at   time.Duration // when the state began
	due  time.Duration
	own  time.Duration // of the request's latency, by being sent late; see tally.owed
}

// group is the connections to one target, and what is counted of them.
type group struct {
	target *target
	conns  []*conn
	// free is a ring of connections that became idle, the first to do so first: all are
	// used, however few would do.
	free        []*conn
	first, many int
	// budget is how many more requests go out as fast as connections allow.
	budget    int64
	flying    int
	recording bool
	tally     tally
}

func newGroup(t *target, conns, first int) *group {
	g := &group{target: t, free: make([]*conn, conns), tally: newTally()}
	for i := range conns {
		g.conns = append(g.conns, &conn{group: g, number: int32(first + i), fd: -1, reader: reader{bodiless: t.bodiless}})
	}
	return g
}

// list puts an idle connection at the end of the ring.
func (g *group) list(c *conn) {
	if c.listed {
		return
	}
	c.listed = true
	g.free[(g.first+g.many)%len(g.free)] = c
	g.many++
}

// take returns the connection that has been idle the longest, or nil.
func (g *group) take() *conn {
	for g.many > 0 {
		c := g.free[g.first]
		if g.first++; g.first == len(g.free) {
			g.first = 0
		}
		g.many--
		c.listed = false
		if c.state == idle {
			return c
		}
	}
	return nil
}

// refused says that nobody listens any more where all connections were.
func (g *group) refused() bool {
	return !slices.ContainsFunc(g.conns, func(c *conn) bool { return c.state != down || !c.refused })
}

// kind is what became of a request.
type kind uint8

const (
	answered kind = iota
	failedConnect
	failedRead
	failedWrite
	failedTimeout
)

// count counts an error, if recording.
func (g *group) count(k kind) {
	if !g.recording {
		return
	}
	switch e := &g.tally.errors; k {
	case failedConnect:
		e.Connect++
	case failedRead:
		e.Read++
	case failedWrite:
		e.Write++
	case failedTimeout:
		e.Timeout++
	}
}

// connect begins to. An error is none of the peer's, but one that ends the run.
func (l *loop) connect(c *conn, now time.Duration) error {
	fd, err := unix.Socket(family(c.group.target.addr), unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	c.fd = fd
	c.state, c.at = connecting, now
	c.refused, c.served = false, false
	c.reader.reset()
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return fmt.Errorf("TCP_NODELAY: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return fmt.Errorf("SO_TIMESTAMPNS: %w", err)
	}
	err = unix.Connect(fd, sockaddr(c.group.target.addr))
	if err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return l.unconnected(c, err, now)
	}
	// Level triggered, each call would report again that the socket can be written.
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: c.number}
	if err := unix.EpollCtl(l.epfd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// connected looks at how it went.
func (l *loop) connected(c *conn, now time.Duration) error {
	code, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = syscall.Errno(code)
	}
	if err != nil {
		return l.unconnected(c, err, now)
	}
	l.rest(c, now, now)
	return nil
}

// unconnected makes it an error of the run before anything has been sent, and later one
// that is counted.
func (l *loop) unconnected(c *conn, err error, now time.Duration) error {
	if l.starting {
		return fmt.Errorf("connect to %v: %w", c.group.target.addr, err)
	}
	c.group.count(failedConnect)
	l.drop(c, now)
	c.refused = errors.Is(err, unix.ECONNREFUSED)
	return nil
}

// drop closes the socket, to be connected anew after a pause: a server that closes at
// once must not make the loop do nothing but connect.
func (l *loop) drop(c *conn, now time.Duration) {
	if c.fd >= 0 {
		_ = unix.Close(c.fd)
		c.fd = -1
	}
	c.state, c.at = down, now
}

// rest makes a connection ready for the next request, which may go out at once. It could
// have been from when the last answer came: since then it is the generator that is late.
func (l *loop) rest(c *conn, came, now time.Duration) {
	c.state, c.at = idle, came
	g := c.group
	if g.budget == 0 {
		g.list(c)
		return
	}
	g.budget--
	l.send(c, now, now)
}

// arrived returns when the kernel had what was read just now, of a connection that sent
// its request earlier: of a loop that was awake, not before it had last found nothing; of
// one that slept, as the kernel's clock has it, which may have been set meanwhile.
func (l *loop) arrived(c *conn, wall int64, now time.Duration) time.Duration {
	came := l.since
	if wall != 0 {
		came = time.Duration(wall - l.base.UnixNano())
	}
	return min(max(came, c.at), now)
}

// send begins a request that was due at a time.
func (l *loop) send(c *conn, due, now time.Duration) {
	c.state, c.at, c.due, c.sent, c.own = flying, now, due, 0, c.group.tally.owed
	c.group.flying++
	if c.group.recording {
		c.group.tally.sent++
	}
	l.write(c, now)
}

func (l *loop) write(c *conn, now time.Duration) {
	request := c.group.target.request
	for c.sent < len(request) {
		n, errno := send(c.fd, request[c.sent:])
		switch errno {
		case 0:
			c.sent += n
		case unix.EINTR:
		case unix.EAGAIN: // the event that it is writable continues
			return
		default:
			l.settle(c, failedWrite, now, now)
			l.drop(c, now)
			return
		}
	}
}

// settle ends the request on the connection. Its end came earlier than it was known.
func (l *loop) settle(c *conn, k kind, came, now time.Duration) {
	g := c.group
	g.flying--
	if !g.recording {
		return
	}
	g.tally.took(now-c.due, c.own+now-came)
	if k != answered {
		g.count(k)
		return
	}
	g.tally.answered++
	if s := c.reader.got.status; s < 200 || s > 299 {
		g.tally.errors.Status++
	}
}

// handle does what an event asks for.
func (l *loop) handle(c *conn, events uint32) error {
	switch c.state {
	case connecting:
		return l.connected(c, l.now())
	case flying:
		if c.sent < len(c.group.target.request) && events&unix.EPOLLOUT != 0 {
			l.write(c, l.now())
		}
	case down: // lost since the batch of events was taken
		return nil
	}
	if events&^unix.EPOLLOUT != 0 && c.state != down {
		return l.read(c, events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0)
	}
	return nil
}

// read takes what has come. ended says that nothing more will.
func (l *loop) read(c *conn, ended bool) error {
	for {
		var n int
		var wall int64
		var errno syscall.Errno
		if l.slept {
			n, wall, errno = l.message.recv(c.fd, l.buf[:])
		} else { // a tenth of what a request costs
			n, errno = recv(c.fd, l.buf[:])
		}
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN:
			return nil
		case errno != 0 || n == 0:
			now := l.now()
			if c.state == flying {
				l.settle(c, failedRead, now, now)
				l.drop(c, now)
				return nil
			}
			// Of an idle connection that is the server's right. A pause here would be in
			// the latency of what becomes due meanwhile.
			l.drop(c, now)
			if c.served {
				return l.connect(c, now)
			}
			return nil
		}
		now := l.now()
		if c.state != flying { // an answer to nothing
			c.group.count(failedRead)
			l.drop(c, now)
			return nil
		}
		used, done, err := c.reader.feed(l.buf[:n])
		if err == nil && used < n {
			err = fmt.Errorf("%w: after its end came %q", ErrMalformed, l.buf[used:min(n, used+80)])
		}
		if err != nil {
			return err
		}
		if done {
			came := l.arrived(c, wall, now)
			l.settle(c, answered, came, now)
			c.served = true
			if !ended && !c.reader.got.close && c.sent == len(c.group.target.request) {
				l.rest(c, came, now)
				return nil
			}
			l.drop(c, now)
			return l.connect(c, now) // at once, as when it was idle
		}
		// A short read has emptied the socket; more is a new event.
		if n < len(l.buf) && !ended {
			return nil
		}
	}
}

func family(a netip.AddrPort) int {
	if a.Addr().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}
