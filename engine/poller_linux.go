package engine

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// readiness is what the kernel says about a descriptor.
type readiness uint32

const (
	readable readiness = unix.EPOLLIN
	writable readiness = unix.EPOLLOUT
	halfShut readiness = unix.EPOLLRDHUP
	hungUp   readiness = unix.EPOLLHUP | unix.EPOLLERR
)

// tags of descriptors that are not connections; connections use their slot.
const (
	tagWake   = -1
	tagTick   = -2
	tagListen = -3 // and below: -3-i is listener i of the loop
)

const (
	maxEvents = 256 // a wake-up of more comes in two batches
	dwellTime = 1   // ms; what other goroutines of the P may have to wait
)

// poller waits for a loop's descriptors. One goroutine uses it at a time,
// except for wake and want.
type poller struct {
	epfd, wakefd, tickfd int

	// mu keeps wake from writing to a descriptor that close has given back, and
	// that may be somebody else's by then.
	mu     sync.Mutex
	closed bool

	// gate is an epoll instance that holds epfd only while the leader parks
	// in Go's poller. Were epfd itself registered there, each event would also
	// wake a thread that waits in Go's poller for something else.
	gate  int
	armed bool

	events [maxEvents]unix.EpollEvent
	n      int // events filled by the last poll

	// An epoll descriptor is itself pollable: parking through Go's own
	// poller lets the P run other goroutines meanwhile. This is the gate.
	file *os.File
	raw  syscall.RawConn
	// Functions for raw.Read, made once: a literal would be allocated each time.
	once, yield func(fd uintptr) bool
	parked      bool // of the pass going on

	ticking bool
}

func newPoller() (_ *poller, err error) {
	p := &poller{epfd: -1, wakefd: -1, tickfd: -1, gate: -1}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("engine: epoll_create1: %w", err)
	}
	if p.gate, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("engine: epoll_create1: %w", err)
	}
	if p.wakefd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("engine: eventfd: %w", err)
	}
	if p.tickfd, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("engine: timerfd_create: %w", err)
	}
	if err = p.add(p.wakefd, tagWake, 0, unix.EPOLLIN|unix.EPOLLET); err != nil {
		return nil, err
	}
	if err = p.add(p.tickfd, tagTick, 0, unix.EPOLLIN|unix.EPOLLET); err != nil {
		return nil, err
	}
	// NewFile registers the descriptor with Go's poller only if it is
	// non-blocking.
	if err = unix.SetNonblock(p.gate, true); err != nil {
		return nil, fmt.Errorf("engine: epoll descriptor: %w", err)
	}
	p.file = os.NewFile(uintptr(p.gate), "epoll")
	if p.raw, err = p.file.SyscallConn(); err != nil {
		return nil, fmt.Errorf("engine: epoll descriptor: %w", err)
	}
	p.once = func(uintptr) bool { return p.poll() > 0 }
	p.yield = p.reopen
	return p, nil
}

func (p *poller) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	gate := p.gate
	if p.file != nil {
		_ = p.file.Close()
		gate = -1
	}
	for _, fd := range []int{p.wakefd, p.tickfd, p.epfd, gate} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// poll fetches what is ready now and never waits.
func (p *poller) poll() int { return p.fetch(0) }

// dwell waits for a moment without telling the scheduler. While requests come
// at a good rate that is all the waiting there is, and the cheapest: a blocking
// call that the scheduler knows of keeps its monitor thread awake every 20 µs to
// take the P away.
func (p *poller) dwell() int { return p.fetch(dwellTime) }

func (p *poller) fetch(timeout int) int {
	n, errno := rawPoll(p.epfd, p.events[:], timeout)
	if errno != 0 {
		n = 0 // EINTR; no other error is possible with a valid descriptor
	}
	p.n = n
	return n
}

// park waits as a goroutine: the P runs others until something is ready.
func (p *poller) park() {
	p.arm(true)
	if !p.armed || p.raw.Read(p.once) != nil {
		p.fetch(dwellTime)
	}
}

// pass parks although something may be ready: the scheduler looks at its own
// poller only when no goroutine is ready, and comes back when the gate, which
// is in there with the descriptors others wait for, is ready like them.
func (p *poller) pass() {
	p.parked = false
	if err := p.raw.Read(p.yield); err != nil || !p.armed {
		p.poll()
	}
	p.arm(false)
}

// reopen is what pass has Read do: nothing but park the first time, and then
// fetch the events.
func (p *poller) reopen(uintptr) bool {
	if p.parked {
		return p.poll() > 0
	}
	p.parked = true
	// Not before: Read has forgotten by now what the gate was ready for. Opened
	// anew, it tells of events that are there already.
	p.arm(false)
	p.arm(true)
	return !p.armed
}

// arm opens or shuts the gate. It stays open from one park to the next.
func (p *poller) arm(on bool) {
	if on == p.armed {
		return
	}
	op := unix.EPOLL_CTL_DEL
	if on {
		op = unix.EPOLL_CTL_ADD
	}
	// Adding can fail for want of memory or watches; then the gate stays shut.
	err := unix.EpollCtl(p.gate, op, p.epfd, &unix.EpollEvent{Events: unix.EPOLLIN})
	p.armed = on && err == nil
}

// event returns the i-th event of the last poll.
func (p *poller) event(i int) (tag int32, gen uint32, r readiness) {
	e := &p.events[i]
	return e.Fd, uint32(e.Pad), readiness(e.Events)
}

func (p *poller) add(fd int, tag int32, gen uint32, events uint32) error {
	ev := unix.EpollEvent{Events: events, Fd: tag, Pad: int32(gen)}
	if err := unix.EpollCtl(p.epfd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("engine: epoll_ctl add descriptor %d: %w", fd, err)
	}
	return nil
}

// watch reports a connection once each time bytes arrive or its peer hangs up.
func (p *poller) watch(fd int, slot int32, gen uint32) error {
	return p.add(fd, slot, gen, unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLET)
}

// want makes a connection report also when it can be written to. It may be
// called by the goroutine that holds the connection.
func (p *poller) want(fd int, slot int32, gen uint32) {
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: slot, Pad: int32(gen)}
	_ = unix.EpollCtl(p.epfd, unix.EPOLL_CTL_MOD, fd, &ev)
}

// forget stops the reports of a descriptor that stays open.
func (p *poller) forget(fd int) {
	_ = unix.EpollCtl(p.epfd, unix.EPOLL_CTL_DEL, fd, nil)
}

// listen reports listener i of the loop as long as connections wait on it. A
// listener shared by several loops wakes one of them.
func (p *poller) listen(fd, i int) error {
	return p.add(fd, tagListen-int32(i), 0, unix.EPOLLIN|unix.EPOLLEXCLUSIVE)
}

// wake ends a wait from another goroutine. It may come after close.
func (p *poller) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(p.wakefd, one[:])
}

// tick starts or stops the periodic event that drives the timeouts.
func (p *poller) tick(every time.Duration, on bool) {
	if on == p.ticking {
		return
	}
	p.ticking = on
	var spec unix.ItimerSpec
	if on {
		spec.Interval = unix.NsecToTimespec(int64(every))
		spec.Value = spec.Interval
	}
	_ = unix.TimerfdSettime(p.tickfd, 0, &spec, nil)
}

// rearm lets the periodic event happen again: a timerfd forwards its timer
// only when it is read. The eventfd needs no reading, edges come per write.
func (p *poller) rearm() {
	var b [8]byte
	_, _ = unix.Read(p.tickfd, b[:])
}
