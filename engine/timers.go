package engine

import "time"

// wait says which timeout a connection is under.
type wait uint8

const (
	waitNone   wait = iota
	waitIdle        // for the next request
	waitHead        // for the rest of a head, or the first bytes of a connection
	waitBody        // for the rest of a body
	waitWrite       // for the client to take its answer
	waitLinger      // for the client to see our close
	waitGone        // for a request whose client half-closed
	waits
)

// queue is an intrusive list of connections in the order of their deadlines.
// All connections of a queue share one timeout, so new ones go to the end.
type queue struct{ first, last *conn }

// timers holds the connections of one loop by what they wait for. Only the
// leader touches it. A request does not: connections are re-examined when
// their deadline has come, and moved back if they were active since.
type timers struct {
	queues  [waits]queue
	timeout [waits]time.Duration // 0 means none
	slack   time.Duration        // how stale the clock may be
}

// set puts c under timeout w, counted from now. The clock lags by up to slack,
// which is added: a timeout may come late but never early.
func (t *timers) set(c *conn, w wait, now int64) {
	t.clear(c)
	if t.timeout[w] <= 0 {
		return
	}
	t.insert(c, w, now+int64(t.timeout[w]+t.slack))
}

// insert puts c into the queue of w. A deadline that is not the latest walks
// back to its place; such deadlines are rare and near the end.
func (t *timers) insert(c *conn, w wait, deadline int64) {
	q := &t.queues[w]
	c.waiting, c.deadline = w, deadline
	after := q.last
	for after != nil && after.deadline > deadline {
		after = after.prev
	}
	c.prev = after
	if after == nil {
		c.next, q.first = q.first, c
	} else {
		c.next, after.next = after.next, c
	}
	if c.next == nil {
		q.last = c
	} else {
		c.next.prev = c
	}
}

// clear takes c out of its queue.
func (t *timers) clear(c *conn) {
	if c.waiting == waitNone {
		return
	}
	q := &t.queues[c.waiting]
	if c.prev == nil {
		q.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		q.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.prev, c.next, c.waiting = nil, nil, waitNone
}

// due returns a connection whose deadline has come, taken out of its queue.
func (t *timers) due(now int64) (*conn, wait) {
	for w := waitNone + 1; w < waits; w++ {
		if c := t.queues[w].first; c != nil && c.deadline <= now {
			t.clear(c)
			return c, w
		}
	}
	return nil, waitNone
}

// expire handles a deadline that has come.
func (l *loop) expire(c *conn, w wait) {
	switch {
	case c.state.Load()&busy != 0:
		if w == waitGone {
			c.state.Or(gone)
			c.hangUp(ErrClientGone)
			return
		}
		l.timers.set(c, waitIdle, l.now)
	case len(c.out) > 0:
		if w == waitWrite {
			l.drop(c)
			return
		}
		l.timers.set(c, waitWrite, l.now)
	case c.in != nil && !c.is(lingering):
		if w == waitBody && l.bodyInTime(c) {
			l.timers.set(c, waitBody, l.now)
			return
		}
		l.output.conn = c
		l.refuse(c, errSlow, c.in.framing.headBytes(c.in.buf))
	case w == waitIdle || w == waitHead && c.requests > 0:
		if idle := l.timers.timeout[waitIdle]; idle == 0 {
			return
		} else if due := c.active + int64(idle+l.timers.slack); due > l.now {
			l.timers.insert(c, waitIdle, due)
			return
		}
		l.drop(c)
	default:
		l.drop(c)
	}
}

// bodyInTime reports whether a body may go on: the whole request within
// ReadTimeout, and bytes at the minimum rate.
func (l *loop) bodyInTime(c *conn) bool {
	s, in := l.srv, c.in
	took := l.now - in.since
	if s.ReadTimeout > 0 && took >= int64(s.ReadTimeout) {
		return false
	}
	rate := s.MinBodyRate
	if rate == 0 || took < int64(bodyGrace) {
		return true
	}
	return int64(len(in.buf)-in.framing.head) >= int64(float64(rate)*float64(took-int64(bodyGrace))/1e9)
}
