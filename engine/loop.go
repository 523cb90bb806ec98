package engine

import (
	"bufio"
	"io"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/cpu"
)

// held is the value of loop.owner while a goroutine leads. Any other value is
// the number of the offer that is open: whoever takes it first leads.
const held = 0

// Phases of a shutdown.
const (
	running uint32 = iota
	stopSoft
	stopForced
)

const (
	acceptBatch = 64

	// How long a busy leader may keep goroutines waiting that wait for a
	// descriptor: those of requests that are out, and those the engine knows
	// nothing of.
	yieldOut = 500 * time.Microsecond
	yieldAny = 5 * time.Millisecond
)

// loop serves the connections of one listener. All fields but those after the
// padding belong to the goroutine that leads it; see lead.go.
type loop struct {
	srv    *Server
	sys    *system
	poller *poller
	id     int

	next     int     // next event of the batch
	todo     []*conn // connections to look at after the events of the batch
	backlog  []*conn // and after the next batch
	conns    []*conn // by slot
	slots    []int32 // free slots
	gen      uint32
	open     int
	stopping uint32
	offers   uint64

	successor func() // succeed; a value made once starts without an allocation

	buf     []byte
	framing framing
	rest    []byte // input after the request being served; in buf
	output  output
	bw      *bufio.Writer
	src     source
	br      *bufio.Reader
	spare   *exchange
	inputs  []*input

	timers  timers
	now     int64 // refreshed with each tick
	yielded int64

	listeners []int
	paused    bool  // accept pauses for want of descriptors
	grumbled  int64 // when that was logged last

	count counts

	_ cpu.CacheLinePad

	// Shared with the goroutines of offloaded requests.
	owner    atomic.Uint64
	queued   atomic.Bool // a successor will run
	sleeping atomic.Bool
	out      atomic.Int64 // requests that other goroutines hold
	clock    atomic.Int64 // copy of now
	given    atomic.Pointer[conn]

	_ cpu.CacheLinePad

	shown shownStats
}

func newLoop(s *Server, id int, sys *system, p *poller, listeners []int) *loop {
	l := &loop{srv: s, id: id, sys: sys, poller: p, listeners: listeners}
	l.successor = l.succeed
	l.buf = make([]byte, readBuffer)
	l.output.sys = sys
	l.bw = bufio.NewWriterSize(&l.output, writeBuffer)
	l.br = bufio.NewReaderSize(&l.src, s.limits.head+1)
	l.timers = s.timers()
	l.now = 1 // 0 means never
	l.clock.Store(1)
	return l
}

// lead serves until the loop ends or another goroutine leads it.
func (l *loop) lead() {
	for {
		for l.next < l.poller.n {
			i := l.next
			l.next++
			if l.dispatch(i) {
				return
			}
		}
		for len(l.todo) > 0 {
			c := l.todo[len(l.todo)-1]
			l.todo = l.todo[:len(l.todo)-1]
			c.queued = false
			if l.resume(c) {
				return
			}
		}
		if phase := l.srv.stopping.Load(); phase != l.stopping {
			l.stop(phase)
		}
		if l.stopping != running && l.open == 0 && l.out.Load() == 0 {
			l.end()
			return
		}
		l.wait()
	}
}

// wait fetches the next events. docs/rationale.md has the figures behind
// the way it waits.
func (l *loop) wait() {
	l.next = 0
	l.count.publish(&l.shown, l.open)
	pass := l.yield()
	l.collect()
	// Whoever gives a connection back after this store wakes the loop, and
	// what was given before it is seen by the check.
	l.sleeping.Store(true)
	switch {
	case len(l.backlog) > 0 || l.given.Load() != nil || l.srv.stopping.Load() != l.stopping:
		l.poller.poll()
	case pass:
		l.poller.pass()
	case l.out.Load() > 0:
		if l.poller.poll() == 0 {
			l.poller.park()
		}
	default:
		if l.poller.dwell() == 0 {
			l.poller.park()
		} else {
			l.poller.arm(false)
		}
	}
	l.sleeping.Store(false)
	l.collect()
	l.todo, l.backlog = l.backlog, l.todo
}

// yield lets other goroutines of the P run that are ready, which matters while
// requests are out. It reports whether those that wait for a descriptor are due.
func (l *loop) yield() (pass bool) {
	out := l.out.Load() > 0
	limit := int64(yieldAny)
	if out {
		limit = int64(yieldOut)
	}
	now := l.srv.clock()
	if now-l.yielded >= limit {
		l.yielded = now
		return true
	}
	if out {
		runtime.Gosched()
	}
	return false
}

// collect takes the connections that were given back.
func (l *loop) collect() {
	if l.given.Load() == nil {
		return
	}
	for c := l.given.Swap(nil); c != nil; {
		next := c.given
		c.given = nil
		seen := c.state.Swap(0)
		if seen&woken != 0 {
			c.mark |= unread
		}
		if seen&finished != 0 {
			c.mark |= halfClosed
		}
		c.active = l.now
		l.timers.set(c, waitIdle, l.now)
		l.again(c)
		c = next
	}
}

// again has c looked at after the next batch of events.
func (l *loop) again(c *conn) {
	if !c.queued {
		c.queued = true
		l.backlog = append(l.backlog, c)
	}
}

// dispatch handles one event. It reports true when another goroutine leads now.
func (l *loop) dispatch(i int) (lost bool) {
	tag, gen, r := l.poller.event(i)
	switch {
	case tag == tagWake:
		return false
	case tag == tagTick:
		l.poller.rearm()
		l.tick()
		return false
	case tag <= tagListen:
		l.accept(l.listeners[tagListen-tag])
		return false
	}
	c := l.conns[tag]
	if c == nil || c.gen != gen {
		return false // closed earlier in this batch
	}
	if l.note(c, r) {
		return false
	}
	return l.ready(c, r)
}

// note remembers an event for the goroutine that holds the connection. It
// reports false when nobody does.
func (l *loop) note(c *conn, r readiness) bool {
	bits := woken
	if r&hungUp != 0 {
		bits |= gone
	}
	if r&halfShut != 0 {
		bits |= finished
	}
	for {
		old := c.state.Load()
		if old&busy == 0 {
			return false
		}
		if c.state.CompareAndSwap(old, old|bits) {
			break
		}
	}
	switch {
	case r&hungUp != 0:
		c.hangUp(ErrClientGone)
	case r&halfShut != 0:
		// The client left, or only finished sending: give the answer a moment.
		l.timers.set(c, waitGone, l.now)
	}
	if r&(writable|hungUp) != 0 {
		if ch := c.drain.Load(); ch != nil {
			select {
			case *ch <- struct{}{}:
			default:
			}
		}
	}
	return true
}

// tick refreshes the clock and handles what is overdue.
func (l *loop) tick() {
	l.now = l.srv.clock()
	l.clock.Store(l.now)
	for {
		c, w := l.timers.due(l.now)
		if c == nil {
			break
		}
		l.expire(c, w)
	}
	l.resumeAccept()
	if l.open == 0 && !l.paused {
		l.poller.tick(0, false)
	}
}

// accept takes connections that wait on a listener, a batch at a time. It
// reports whether there may be more.
func (l *loop) accept(listener int) (more bool) {
	for range acceptBatch {
		fd, errno := l.sys.accept(listener)
		switch errno {
		case 0:
			l.admit(fd)
		case syscall.EINTR, syscall.ECONNABORTED, syscall.EPROTO, syscall.EPERM:
			// That connection is gone; the next may be fine.
		case syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS:
			l.pauseAccept(errno)
			return false
		default:
			return false
		}
	}
	return true
}

// pauseAccept stops looking at the listeners: they would report the same
// connection for ever. The next tick and the next closed connection try again.
func (l *loop) pauseAccept(errno syscall.Errno) {
	if l.paused {
		return
	}
	l.paused = true
	if l.grumbled == 0 || l.now-l.grumbled > int64(time.Second) {
		l.grumbled = l.now
		l.srv.logf("engine: loop %d: accept pauses: %v", l.id, errno)
	}
	for _, fd := range l.listeners {
		l.poller.forget(fd)
	}
	l.poller.tick(l.timers.slack, true)
}

// resumeAccept ends a pause.
func (l *loop) resumeAccept() {
	if !l.paused {
		return
	}
	l.paused = false
	for i, fd := range l.listeners {
		if err := l.poller.listen(fd, i); err != nil {
			l.srv.logf("engine: loop %d: %v", l.id, err)
			l.paused = true
		}
	}
}

// admit starts to serve a connection.
func (l *loop) admit(fd int) {
	addrs, status := l.srv.admit(l.sys, fd)
	if status != 0 {
		_, _ = l.sys.send(fd, l.srv.refusal(status))
		// A request that has come already would make the close a reset, which
		// may overtake the answer.
		_ = l.sys.shutdown(fd)
		_, _ = l.sys.recv(fd, l.buf)
		_ = l.sys.close(fd)
		return
	}
	c := l.enter(fd, addrs)
	if err := l.poller.watch(fd, c.slot, c.gen); err != nil {
		l.srv.logf("engine: loop %d: %v", l.id, err)
		l.drop(c)
	}
}

// enter puts a new connection into a slot and under its first timeout.
func (l *loop) enter(fd int, addrs *addresses) *conn {
	slot := int32(len(l.conns))
	if n := len(l.slots); n > 0 {
		slot = l.slots[n-1]
		l.slots = l.slots[:n-1]
	} else {
		l.conns = append(l.conns, nil)
	}
	if l.open == 0 {
		l.now = l.srv.clock() // the tick may have been off
		l.clock.Store(l.now)
		l.poller.tick(l.timers.slack, true)
	}
	l.gen++
	c := &conn{loop: l, fd: int32(fd), slot: slot, gen: l.gen, active: l.now, addrs: addrs}
	l.conns[slot] = c
	l.open++
	if l.timers.timeout[waitHead] > 0 {
		l.timers.set(c, waitHead, l.now)
	} else {
		l.timers.set(c, waitIdle, l.now)
	}
	return c
}

// stop begins or hastens the end of the loop.
func (l *loop) stop(phase uint32) {
	if l.stopping == running {
		// Closing a listener resets what waits on it, so take that first.
		for _, fd := range l.listeners {
			for l.accept(fd) {
				continue // until nothing waits
			}
			l.poller.forget(fd)
			_ = l.sys.close(fd)
		}
		l.listeners, l.paused = nil, false
	}
	l.stopping = phase
	for _, c := range l.conns {
		switch {
		case c == nil:
		case l.note(c, 0): // so that it comes back through given, and is looked at
			if phase == stopForced {
				c.hangUp(ErrShutdown)
				_ = l.sys.abort(int(c.fd))
			}
		case phase == stopForced:
			l.drop(c)
		case c.in == nil && len(c.out) == 0:
			l.again(c) // a last look: a request may have come already
		}
	}
}

// end releases what the loop holds.
func (l *loop) end() {
	l.count.publish(&l.shown, l.open)
	l.poller.close()
	l.srv.loops.Done()
}

// source feeds a finished head to fasthttp's parser.
type source struct{ b []byte }

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.b)
	s.b = s.b[n:]
	return n, nil
}
