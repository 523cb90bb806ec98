package cell

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"pinion/internal/stats"
)

// hub relays removals between the cells that have joined it.
type hub struct {
	timeout time.Duration // for a cell to confirm
	log     *slog.Logger
	relayed *stats.Counter

	mu     sync.Mutex // guards the links' fields as well; never held while something is written
	joined []*link
}

// link is a cell of the hub.
type link struct {
	cell int
	out  *outbox
	kill func() // ends the cell's process, and so the link; must not block

	// Guarded by hub.mu.
	gone     bool
	orderly  bool        // all that it wrote has been announced, and it writes no more
	queue    []*removal  // to be sent when flight is confirmed, oldest first
	flight   []*removal  // sent in one packet and not confirmed yet
	deadline time.Time   // of flight
	watch    *time.Timer // runs while flight is not empty
	excused  bool        // its time has been prolonged; see hub.expire
}

// removal is what one cell announced in one packet, or a flush: the end of one that may
// not have announced everything.
type removal struct {
	from *link  // nil: nobody waits for it
	ids  []byte // none: a flush
	at   time.Time
	left int // cells that have not confirmed, and 1 while they are told
}

func (r *removal) flushes() bool { return len(r.ids) == 0 }

// join has l hear of every removal from now on, and tells it so.
func (h *hub) join(l *link) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.gone {
		return
	}
	for _, other := range h.joined {
		if other == l {
			return
		}
	}
	h.joined = append(h.joined, l)
	l.out.put(message{packet: packet(kindWelcome)})
}

// announce passes ids, which it takes over, on to every other cell.
func (h *hub) announce(from *link, ids []byte) {
	h.relayed.Add(0, uint64(len(ids)/idSize))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.relay(&removal{from: from, ids: ids})
}

// relay passes r on to every cell but the one it is from. The hub's lock is held.
func (h *hub) relay(r *removal) {
	r.at, r.left = time.Now(), 1
	for _, l := range h.joined {
		if l != r.from {
			r.left++
			l.queue = append(l.queue, r)
			h.next(l)
		}
	}
	r.settle()
}

// bye notes that l can end, and the others keep what they cached.
func (h *hub) bye(l *link) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.orderly = true
}

// confirm notes that l has removed what it was sent last. It reports false if l was
// sent nothing.
func (h *hub) confirm(l *link) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(l.flight) == 0 {
		return l.gone
	}
	for _, r := range l.flight {
		r.settle()
	}
	l.flight, l.excused = nil, false
	if l.watch != nil {
		l.watch.Stop()
	}
	h.next(l)
	return true
}

// leave lets nobody wait for l any more, and has the others forget everything unless
// l had said bye. Its process must have ended, or have given its cache up.
func (h *hub) leave(l *link) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.gone {
		return
	}
	l.gone = true
	if l.watch != nil {
		l.watch.Stop()
	}
	joined := false // before, it wrote nothing
	for i, other := range h.joined {
		if other == l {
			h.joined = append(h.joined[:i:i], h.joined[i+1:]...)
			joined = true
			break
		}
	}
	for _, r := range append(l.flight, l.queue...) {
		r.settle()
	}
	l.flight, l.queue = nil, nil
	if joined && !l.orderly && len(h.joined) > 0 {
		h.log.Warn("the other cells forget what they cached: one ended, and may not have announced all its writes", "cell", l.cell)
		h.relay(new(removal))
	}
}

// next sends what waits for l, as far as it fits into a packet, unless a packet is on
// its way.
func (h *hub) next(l *link) {
	if len(l.flight) > 0 || len(l.queue) == 0 {
		return
	}
	p, n := pack(l.queue)
	l.flight = append(l.flight, l.queue[:n]...)
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.queue = nil
	}
	l.out.put(message{packet: p})

	// The time counts from the announcement, so that waiting for the flight before it
	// does not add up. But that may have used up most of it, and a cell is not to be
	// killed for what it was sent just now.
	now := time.Now()
	l.deadline = l.flight[0].at.Add(h.timeout)
	if least := now.Add(h.timeout / 4); l.deadline.Before(least) {
		l.deadline = least
	}
	if left := l.deadline.Sub(now); l.watch == nil {
		l.watch = time.AfterFunc(left, func() { h.expire(l) })
	} else {
		l.watch.Reset(left)
	}
}

// pack returns the next packet of a queue that is not empty, and how many of its removals
// that is. A flush is all of them: it has not been sent yet, so it covers those that came after it.
func pack(queue []*removal) (p []byte, n int) {
	if slices.ContainsFunc(queue, (*removal).flushes) {
		return packet(kindFlush), len(queue)
	}
	size := 1
	for ; n < len(queue) && size+len(queue[n].ids) <= maxPacket; n++ {
		size += len(queue[n].ids)
	}
	p = append(make([]byte, 0, size), byte(kindRemovals))
	for _, r := range queue[:n] {
		p = append(p, r.ids...)
	}
	return p, n
}

// expire has l killed if it did not confirm in time.
func (h *hub) expire(l *link) {
	h.mu.Lock()
	if l.gone || len(l.flight) == 0 {
		h.mu.Unlock()
		return
	}
	over := time.Since(l.deadline)
	if over < 0 { // a timer that fired while its flight was being confirmed
		l.watch.Reset(-over)
		h.mu.Unlock()
		return
	}
	// A timer that is late by so much says that this process was stopped, or the
	// machine was: the confirmation may be there, unread.
	if over > h.timeout/4 && !l.excused {
		l.excused = true
		l.watch.Reset(h.timeout)
		h.mu.Unlock()
		return
	}
	h.mu.Unlock()
	h.log.Warn("a cell is killed: it did not confirm a removal in time", "cell", l.cell, "timeout", h.timeout)
	l.kill()
}

// settle notes that one cell less has to confirm r. The hub's lock is held.
func (r *removal) settle() {
	if r.left--; r.left == 0 && r.from != nil {
		r.from.out.put(message{packet: packet(kindConfirmed)}) // a closed outbox needs nothing
	}
}
