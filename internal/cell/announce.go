package cell

import (
	"context"
	"sync"
)

// announcements gathers the ids that a cell announces into packets, one of which is
// on its way at a time.
type announcements struct {
	out *outbox

	mu      sync.Mutex // never held while something is written
	flight  *batch     // sent and not confirmed yet
	waiting []*batch   // all but the last one are full
	ended   bool       // nothing is added any more
}

// batch is one packet of announcements.
type batch struct {
	packet    []byte        // not changed once it was sent
	confirmed chan struct{} // closed when every other cell has removed the ids
}

// Announce has every other cell remove id, and returns when all that have joined have done so
// or have ended. Call it after the write has been committed and id been removed here. It
// takes as long as a round trip to the slowest cell, and two if ids that this cell has announced
// before are on their way. With cells that do not respond it takes 5/2 of
// Config.RelayTimeout at most, and the time that the kernel needs to end them; the
// package says what can add to that.
//
// If ctx ends first, its cause is returned, and the others are told all the same. If
// the supervisor is gone, or the Member closed, the error is [ErrNoSupervisor].
func (m *Member) Announce(ctx context.Context, id int64) error {
	select {
	case <-m.gone:
		return ErrNoSupervisor
	default:
	}
	b := m.announcements.add(id)
	if b == nil {
		return ErrNoSupervisor
	}
	select {
	case <-b.confirmed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-m.gone:
	}
	select {
	case <-b.confirmed: // before the end
		return nil
	default:
		return ErrNoSupervisor
	}
}

// add returns the batch that id is in, nil after end.
func (a *announcements) add(id int64) *batch {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return nil
	}
	n := len(a.waiting)
	if n == 0 || len(a.waiting[n-1].packet) == maxPacket {
		a.waiting = append(a.waiting, &batch{
			packet:    packet(kindAnnounce),
			confirmed: make(chan struct{}),
		})
		n++
	}
	b := a.waiting[n-1]
	b.packet = appendID(b.packet, id)
	a.next()
	return b
}

// confirmed lets those go on whose batch was on its way.
func (a *announcements) confirmed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.flight != nil {
		close(a.flight.confirmed)
		a.flight = nil
	}
	a.next()
}

// end has nothing be added any more. It reports whether all that was has been confirmed.
func (a *announcements) end() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	return a.flight == nil && len(a.waiting) == 0
}

func (a *announcements) next() {
	if a.flight != nil || len(a.waiting) == 0 {
		return
	}
	a.flight = a.waiting[0]
	a.waiting[0] = nil
	if a.waiting = a.waiting[1:]; len(a.waiting) == 0 {
		a.waiting = nil
	}
	a.out.put(message{packet: a.flight.packet})
}
