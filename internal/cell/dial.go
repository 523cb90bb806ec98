package cell

import (
	"context"
	"fmt"
	"net"
)

// Dial returns a fresh connection to what [Member.Admin] accepts in that cell, without a
// port or a file. It returns when the connection is on its way, which for a cell that
// is stopped or busy may be before it is accepted; one that never is ends with the
// cell. The caller closes it.
//
// For a cell without a process the error wraps [ErrNotRunning]; if ctx ends first, it is
// the cause of that.
func (s *Supervisor) Dial(ctx context.Context, cell int) (net.Conn, error) {
	conn, err := s.dial(ctx, cell)
	if err != nil {
		return nil, fmt.Errorf("dial cell %d: %w", cell, err)
	}
	return conn, nil
}

func (s *Supervisor) dial(ctx context.Context, cell int) (_ net.Conn, err error) {
	out := s.outboxOf(cell)
	if out == nil {
		return nil, ErrNotRunning
	}
	ours, theirs, err := streamPair()
	if err != nil {
		return nil, err
	}
	conn, err := unixConn(ours)
	if err != nil {
		_ = theirs.Close() // nothing was written
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = conn.Close() // nothing was written
		}
	}()
	st := &stream{file: theirs, sent: make(chan error, 1)}
	if !out.put(message{packet: packet(kindStream), stream: st}) {
		_ = theirs.Close() // nothing was written
		return nil, ErrNotRunning
	}
	select {
	case err := <-st.sent:
		if err != nil {
			return nil, err
		}
		return conn, nil
	case <-ctx.Done():
		out.withdraw(st)
		return nil, context.Cause(ctx)
	}
}

// outboxOf returns that of the cell's process, or nil.
func (s *Supervisor) outboxOf(cell int) *outbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cell < 0 || cell >= len(s.cells) || s.cells[cell].life == nil {
		return nil
	}
	return s.cells[cell].life.link.out
}
