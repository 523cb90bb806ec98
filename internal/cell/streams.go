package cell

import (
	"net"
	"sync"
)

// maxStreams is how many connections wait to be accepted at most.
const maxStreams = 64

// streams is a listener for connections that come over the control socket.
type streams struct {
	waiting chan net.Conn
	done    chan struct{} // closed by Close

	mu     sync.Mutex // orders offer and Close
	closed bool
}

func newStreams() *streams {
	return &streams{waiting: make(chan net.Conn, maxStreams), done: make(chan struct{})}
}

// offer takes conn over, and closes it if too many wait.
func (s *streams) offer(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		select {
		case s.waiting <- conn:
			return
		default:
		}
	}
	_ = conn.Close() // nothing was written
}

// Accept waits for the next connection. After Close the error wraps net.ErrClosed.
func (s *streams) Accept() (net.Conn, error) {
	select {
	case <-s.done:
	case conn := <-s.waiting:
		return conn, nil
	}
	return nil, &net.OpError{Op: "accept", Net: "unix", Addr: s.Addr(), Err: net.ErrClosed}
}

// Close ends Accept and closes the connections that wait. It returns nil.
func (s *streams) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.done)
	for {
		select {
		case conn := <-s.waiting:
			_ = conn.Close() // nothing was written
		default:
			return nil
		}
	}
}

// Addr is an address without a name: there is nothing to dial.
func (s *streams) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }
