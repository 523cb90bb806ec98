package cell

import (
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"pinion/affinity"
)

// welcomeTimeout bounds how long a cell waits for its supervisor's first word.
const welcomeTimeout = 10 * time.Second

// byeTimeout bounds how long Close waits for a supervisor that does not read.
const byeTimeout = time.Second

// Member is a cell, seen from inside. Its methods are safe for concurrent use.
type Member struct {
	id        identity
	listeners []net.Listener
	streams   *streams
	control   *control
	out       *outbox
	lost      func()
	onRemoval atomic.Pointer[func(id int64)]
	onFlush   atomic.Pointer[func()]

	welcomed chan struct{} // closed by welcome
	welcome  func()        // removals come from now on; more than once is fine
	gone     chan struct{} // closed when nothing comes any more
	closing  atomic.Bool
	talk     sync.WaitGroup

	announcements announcements
}

// Inherited returns what the supervisor made this process, or nil, nil if it is no
// cell. Call it once, early in main and before anything is cached: the supervisor tells
// the cell of removals from then on. It removes PINION_CELL from the environment.
//
// The process is killed when the supervisor ends, unless the Member was closed before.
func Inherited() (*Member, error) {
	id, ok, err := takeIdentity()
	if !ok || err != nil {
		return nil, err
	}
	m, err := newMember(id, os.NewFile(controlFD, "control"), killSelf)
	if err != nil {
		return nil, fmt.Errorf("cell %d: %w", id.Index, err)
	}
	for i := range id.Listeners {
		ln, err := inheritedListener(firstFileFD + id.Files + i)
		if err != nil {
			m.closeListeners()
			m.Close()
			return nil, fmt.Errorf("cell %d: listener %d: %w", id.Index, i, err)
		}
		m.listeners = append(m.listeners, ln)
	}
	return m, nil
}

// newMember takes file, the control socket, over, and waits for the supervisor. lost
// is called when that is gone.
func newMember(id identity, file *os.File, lost func()) (*Member, error) {
	c, err := newControl(file, true)
	if err != nil {
		return nil, err
	}
	m := &Member{
		id: id, streams: newStreams(), control: c, out: newOutbox(), lost: lost,
		welcomed: make(chan struct{}), gone: make(chan struct{}),
	}
	m.welcome = sync.OnceFunc(func() { close(m.welcomed) })
	m.announcements.out = m.out
	m.talk.Go(func() {
		if err := m.out.run(c); err != nil {
			_ = c.conn.Close() // what cannot tell must not hear
		}
	})
	m.talk.Go(m.listen)
	m.out.put(message{packet: packet(kindHello)})
	late := time.NewTimer(welcomeTimeout)
	defer late.Stop()
	select {
	case <-m.welcomed:
		return m, nil
	case <-m.gone:
		return nil, ErrNoSupervisor
	case <-late.C:
		m.Close()
		return nil, fmt.Errorf("the supervisor did not answer: %w", os.ErrDeadlineExceeded)
	}
}

// inheritedListener takes fd over.
func inheritedListener(fd int) (net.Listener, error) {
	file := os.NewFile(uintptr(fd), "listener")
	defer file.Close() //nolint:errcheck // the listener has a duplicate
	return net.FileListener(file)
}

// killSelf ends this process as the kernel does when the supervisor ends.
func killSelf() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill() // it does not fail for oneself
	}
}

// Index is the cell's number, from 0.
func (m *Member) Index() int { return m.id.Index }

// Of is how many cells there are.
func (m *Member) Of() int { return m.id.Of }

// Placement is where the cell was started.
func (m *Member) Placement() affinity.Placement {
	return affinity.Placement{CPUs: m.id.CPUs, Memory: m.id.Memory}
}

// Share is the cell's part of the cgroup's CPU quota.
func (m *Member) Share() float64 { return m.id.Share }

// Listeners returns the cell's listeners, in the order of its Spec. They are the
// caller's, who closes them. Closing one does not remove its socket file.
func (m *Member) Listeners() []net.Listener { return m.listeners }

// Admin returns a listener for what [Supervisor.Dial] opens. Connections that come
// before somebody accepts wait; what is more than 64 of them is closed.
func (m *Member) Admin() net.Listener { return m.streams }

// OnRemoval sets what is called for each id that another cell announces, in place of what was
// set before. Set it before the cache gets its first entry: removals that come earlier
// are confirmed, as there is nothing to remove.
//
// Calls come one after the other. The other cell waits until f returns: f must not
// block, and must not call Announce.
func (m *Member) OnRemoval(f func(id int64)) { m.onRemoval.Store(&f) }

// OnFlush sets what is called when another cell ended without a last word: it may have
// committed a write that it did not live to announce, so f must forget everything that
// is cached, and what is being loaded. Else as for OnRemoval, with which f never
// runs at once; f may take longer, far below Config.RelayTimeout, as a cell that does not confirm
// in time is killed.
func (m *Member) OnFlush(f func()) { m.onFlush.Store(&f) }

// Ready tells the supervisor that the cell serves. A second call does nothing. The
// error is [ErrNoSupervisor].
func (m *Member) Ready() error { return m.tell(kindReady) }

// Draining tells the supervisor that the cell is about to end. The error is
// [ErrNoSupervisor].
func (m *Member) Draining() error { return m.tell(kindDraining) }

func (m *Member) tell(k kind) error {
	select {
	case <-m.gone:
		return ErrNoSupervisor
	default:
	}
	if !m.out.put(message{packet: packet(k)}) {
		return ErrNoSupervisor
	}
	return nil
}

// Close ends the connection to the supervisor, which no longer tells of removals: the
// cache must not be used any more, and the process must end soon. It closes what
// Admin returned, but not the listeners.
//
// It also says that everything this cell committed has been announced. A process in
// which a write may still be under way ends without Close: the other cells then forget
// everything. So they do if an announcement has not been confirmed yet.
func (m *Member) Close() {
	if m.closing.Swap(true) {
		return
	}
	if m.announcements.end() {
		// Unsaid, it costs the others their caches and nothing else.
		_ = m.control.conn.SetWriteDeadline(time.Now().Add(byeTimeout))
		_ = m.control.send(packet(kindBye), nil)
	}
	_ = m.control.conn.Close() // the supervisor sees it, whatever happens here
	m.talk.Wait()
}

func (m *Member) closeListeners() {
	for _, ln := range m.listeners {
		_ = ln.Close() // the supervisor has them too
	}
}

// listen acts on what the supervisor says until it says no more.
func (m *Member) listen() {
	_ = m.hear() // whatever it is, the supervisor is of no more use
	close(m.gone)
	m.out.close()
	_ = m.streams.Close() // never fails
	if !m.closing.Load() {
		m.lost()
	}
}

func (m *Member) hear() error {
	for {
		k, ids, file, err := m.control.receive()
		if err != nil {
			return err
		}
		switch k {
		case kindWelcome:
			m.welcome()
		case kindConfirmed:
			m.announcements.confirmed()
		case kindRemovals:
			if f := m.onRemoval.Load(); f != nil {
				eachID(ids, *f)
			}
			m.out.put(message{packet: packet(kindConfirm)})
		case kindFlush:
			if f := m.onFlush.Load(); f != nil {
				(*f)()
			}
			m.out.put(message{packet: packet(kindConfirm)})
		case kindStream:
			m.accept(file)
		default:
			return fmt.Errorf("%w of kind %d", errPacket, k)
		}
	}
}

// accept offers a connection to whoever accepts. file is nil if this process had no
// descriptor left for it: the kernel has closed it.
func (m *Member) accept(file *os.File) {
	if file == nil {
		return
	}
	conn, err := unixConn(file)
	if err != nil {
		return // no descriptor left; the other end sees it closed
	}
	m.streams.offer(conn)
}
