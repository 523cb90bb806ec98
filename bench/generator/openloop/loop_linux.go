package openloop

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// spin is how near the next due time must be for the loop to wait for it awake. On a
	// virtual machine to wake up takes some 40 µs, which a sleeping loop adds to what it
	// measures. One that never sleeps adds nothing to the median, but was the worse for the
	// p99: it uses up its turn, and then waits for whoever shares its CPU.
	spin = 100 * time.Microsecond
	// sweepEvery is the time between two looks for timeouts and lost connections; one of
	// those is connected anew after as long.
	sweepEvery = 10 * time.Millisecond
	never      = time.Duration(math.MaxInt64)
)

// errNoAnswer is why a warm-up fails. With errNobody, nobody listens any more either.
var (
	errNoAnswer = errors.New("no answer")
	errNobody   = errors.New("nobody listens")
)

// process is the number of the event that the measured process has ended; those of
// connections begin at 0.
const process = -1

// loop is one thread of a run. Nothing in it is shared but halt.
type loop struct {
	timeout time.Duration
	base    time.Time // of all times here
	halt    *atomic.Bool

	epfd   int
	events [64]unix.EpollEvent
	buf    [64 << 10]byte

	message message
	slept   bool          // before this batch of events
	since   time.Duration // they came after this, if it has not
	polled  time.Duration // the last time
	full    bool          // and more may have been there

	main, beside *group // beside may be nil
	conns        []*conn
	opened       int // how many of them have been connected once
	process      int // pidfd of the server, or -1

	schedule *schedule     // nil: closed loop
	start    time.Duration // of the schedule
	next     time.Duration // when the next request is due

	starting  bool          // the window has not begun: what goes wrong ends the run
	sleepless bool          // the kernel lacks epoll_pwait2
	sweep     time.Duration // when the next is
	waited    time.Duration // for events, awake or not
	preempted time.Duration // others had the CPU, in the window
	finish    time.Duration
}

func newLoop(c *Config, thread int, base time.Time) (*loop, error) {
	share := func(n int) int { return n/c.Threads + min(1, max(0, n%c.Threads-thread)) }
	t, err := newTarget(c.URL, c.Method, c.Body, c.Header)
	if err != nil {
		return nil, err
	}
	l := &loop{timeout: c.Timeout, base: base, next: never, process: -1, starting: true, main: newGroup(t, share(c.Conns), 0)}
	l.conns = l.main.conns
	if c.Rate > 0 {
		l.schedule = newSchedule(c, thread)
	}
	if c.Beside != "" {
		if t, err = newTarget(c.Beside, "GET", "", nil); err != nil {
			return nil, err
		}
		l.beside = newGroup(t, share(c.BesideConns), len(l.conns))
		l.conns = append(l.conns[:len(l.conns):len(l.conns)], l.beside.conns...)
	}
	l.main.budget = int64(share(c.Warmup))
	if l.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	if c.PID != 0 {
		if err := l.watch(c.PID); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

// watch makes the end of a process an event: pidfd_open(2), of Linux 5.3. Before that it
// is known when the CPU time is asked for.
func (l *loop) watch(pid int) (err error) {
	l.process, err = unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ENOSYS) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	if err := unix.EpollCtl(l.epfd, unix.EPOLL_CTL_ADD, l.process, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: process}); err != nil {
		return fmt.Errorf("epoll_ctl: process %d: %w", pid, err)
	}
	return nil
}

func (l *loop) close() {
	for _, c := range l.conns {
		if c.fd >= 0 {
			_ = unix.Close(c.fd)
		}
	}
	if l.process >= 0 {
		_ = unix.Close(l.process)
	}
	_ = unix.Close(l.epfd)
}

func (l *loop) now() time.Duration { return time.Since(l.base) }

// open connects everything, a few at a time: the queue of a listener may be short.
func (l *loop) open() error {
	const together = 64
	for i, c := range l.conns {
		now := l.now()
		if err := l.connect(c, now); err != nil {
			return err
		}
		l.opened++
		if (i+1)%together != 0 && i+1 < len(l.conns) {
			continue
		}
		open := func() (bool, error) {
			return !slices.ContainsFunc(l.conns[:i+1], func(c *conn) bool { return c.state == connecting }), nil
		}
		if err := l.until(open, now+l.timeout); err != nil {
			return fmt.Errorf("%d connections: %w", len(l.conns), err)
		}
	}
	return nil
}

// warm sends the requests that do not count. The connections beside begin, and stay at it.
func (l *loop) warm() error {
	if l.beside != nil {
		l.beside.budget = math.MaxInt64
		l.pump(l.beside)
	}
	l.pump(l.main)
	err := l.until(func() (bool, error) { return l.main.budget == 0 && l.main.flying == 0, nil }, never)
	if err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	return nil
}

// measure is the window that counts: from start for the duration, and then until nothing
// is out any more, or the timeout.
func (l *loop) measure(start, duration time.Duration) error {
	before := runDelay()
	l.starting, l.waited = false, 0
	l.main.recording = true
	if l.beside != nil {
		l.beside.recording = true
	}
	end := start + duration
	if l.schedule != nil {
		l.start = start
		l.advance()
	} else {
		l.main.budget = math.MaxInt64
		l.pump(l.main)
	}
	err := l.until(func() (bool, error) {
		if l.now() < end {
			return false, nil
		}
		if l.schedule == nil {
			l.main.budget = 0
		}
		if l.main.flying > 0 {
			return false, nil
		}
		if l.next != never && l.main.refused() {
			return false, errNobody
		}
		return l.next == never, nil
	}, end+l.timeout)
	if err != nil {
		l.giveUp()
	}
	if errors.Is(err, errNoAnswer) || errors.Is(err, errNobody) {
		err = nil
	}
	l.finish = max(l.now(), start+1) // a server may have ended before; this divides
	l.preempted = runDelay().since(before)
	return err
}

// giveUp ends what is still out, and what was due and never sent. Of a run that is cut
// off, what would have been due later was not.
func (l *loop) giveUp() {
	now := l.now()
	free := l.main.take() != nil
	for _, c := range l.main.conns {
		if c.state == flying {
			l.settle(c, failedTimeout, now, now)
			l.drop(c, now)
		}
	}
	for l.next <= now {
		if free {
			l.main.tally.unsent++
		}
		l.main.count(failedTimeout)
		l.main.tally.took(now-l.next, 0)
		l.advance()
	}
	if l.next != never {
		l.main.tally.due--
		l.next = never
	}
}

// advance goes to the next request of the schedule.
func (l *loop) advance() {
	due, ok := l.schedule.next()
	if !ok {
		l.next = never
		return
	}
	l.next = l.start + due
	l.main.tally.due++
}

// pump sends what the budget allows.
func (l *loop) pump(g *group) {
	for g.budget > 0 {
		c := g.take()
		if c == nil {
			return
		}
		g.budget--
		now := l.now()
		l.send(c, now, now)
	}
}

// dispatch sends what is due. It goes by the clock, not by the batch of events: a batch
// takes longer than the gap between two requests may be.
func (l *loop) dispatch() {
	if l.next == never {
		return
	}
	for now := l.now(); l.next <= now; now = l.now() {
		c := l.main.take()
		if c == nil {
			return
		}
		l.main.tally.sending(l.next, c.at, now)
		due := l.next
		l.advance()
		l.send(c, due, now)
	}
}

// until runs the loop until done, which it asks after each batch of events. At the
// deadline it returns errNoAnswer, and ErrEnded with the measured process.
func (l *loop) until(done func() (bool, error), deadline time.Duration) error {
	for {
		l.dispatch()
		if is, err := done(); is || err != nil {
			return err
		}
		now := l.now()
		if now >= deadline {
			return errNoAnswer
		}
		if l.halt.Load() {
			return context.Canceled
		}
		if now >= l.sweep {
			if err := l.look(now); err != nil {
				return err
			}
		}
		n, err := l.wait(now)
		if err != nil {
			return err
		}
		ended := false
		for _, ev := range l.events[:n] {
			if ev.Fd == process {
				ended = true // after what it has still answered
				continue
			}
			if err := l.handle(l.conns[ev.Fd], ev.Events); err != nil {
				return err
			}
			l.dispatch()
		}
		if ended {
			return ErrEnded
		}
	}
}

// wait returns how many events there are, perhaps none. It sleeps unless a request is due
// soon.
func (l *loop) wait(now time.Duration) (int, error) {
	if l.slept = false; !l.full {
		l.since = l.polled
	}
	l.polled = now
	n, errno := poll(l.epfd, l.events[:])
	if errno == 0 && n == 0 {
		till := l.sweep
		// What is due by now is sent at once, unless it waits for a connection.
		if l.next > now || l.main.many > 0 {
			till = min(till, l.next-spin)
		}
		if d := till - now; d > 0 && !l.sleepless {
			n, errno = wait(l.epfd, l.events[:], d)
			l.sleepless = errno == unix.ENOSYS
			l.slept = !l.sleepless
		}
		l.polled = l.now()
		l.waited += l.polled - now
	}
	l.full = n == len(l.events)
	if errno == 0 || errno == unix.EINTR || errno == unix.ENOSYS {
		return max(0, n), nil
	}
	return 0, fmt.Errorf("epoll_wait: %w", errno)
}

// look finds what has timed out, and connects anew what is down.
func (l *loop) look(now time.Duration) error {
	l.sweep = now + sweepEvery
	l.main.tally.usual = time.Duration(l.main.tally.latency.ValueAtPercentile(50))
	for _, c := range l.conns[:l.opened] { // the others are open's
		switch late := now - c.at; {
		case c.state == down && late >= sweepEvery:
			if err := l.connect(c, now); err != nil {
				return err
			}
		case c.state == connecting && late >= l.timeout:
			if err := l.unconnected(c, unix.ETIMEDOUT, now); err != nil {
				return err
			}
		case c.state == flying && late >= l.timeout:
			if l.starting {
				return fmt.Errorf("%w within %v from %v", errNoAnswer, l.timeout, c.group.target.addr)
			}
			l.settle(c, failedTimeout, now, now)
			l.drop(c, now)
		}
	}
	return nil
}
