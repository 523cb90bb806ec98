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

// wheelSpokes is into how many buckets a timeout is cut at most: a connection is
// closed late by up to this part of it.
const wheelSpokes = 256

// inReady is the bucket number of connections in wheel.ready.
const inReady = -1

// wheel holds the connections that wait for one thing, by the time at which
// their deadline will have passed. Deadlines are set in any order, since a busy
// connection is put back with what is left of its time; each costs O(1).
type wheel struct {
	width   int64   // ns of a bucket
	at      int64   // number of the first bucket that is not over
	count   int     // connections in all lists
	buckets []*conn // heads of intrusive lists; bucket i is at i % len
	ready   *conn   // the bucket being emptied
}

// timers holds the connections of one loop by what they wait for. Only the
// leader touches it. A request does not: connections are re-examined when
// their deadline has come, and put back if they were active since.
type timers struct {
	wheels  [waits]wheel
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
	t.insert(c, w, now+int64(t.timeout[w]+t.slack), now)
}

// insert puts c, which waits for nothing, into the wheel of w.
func (t *timers) insert(c *conn, w wait, deadline, now int64) {
	q := &t.wheels[w]
	if q.buckets == nil {
		span := int64(t.timeout[w] + t.slack)
		q.width = max(int64(t.slack), span/wheelSpokes, 1)
		q.buckets = make([]*conn, span/q.width+3)
	}
	if q.count == 0 {
		q.at = max(q.at, now/q.width) // nothing waited: catch up
	}
	c.waiting, c.deadline = w, deadline
	c.bucket = int16(max(deadline/q.width, q.at) % int64(len(q.buckets)))
	c.prev, c.next = nil, q.buckets[c.bucket]
	if c.next != nil {
		c.next.prev = c
	}
	q.buckets[c.bucket] = c
	q.count++
}

// clear takes c out of its wheel.
func (t *timers) clear(c *conn) {
	if c.waiting == waitNone {
		return
	}
	q := &t.wheels[c.waiting]
	switch {
	case c.prev != nil:
		c.prev.next = c.next
	case c.bucket == inReady:
		q.ready = c.next
	default:
		q.buckets[c.bucket] = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	q.count--
	c.prev, c.next, c.waiting = nil, nil, waitNone
}

// due returns a connection whose deadline has come, taken out of its wheel.
func (t *timers) due(now int64) (*conn, wait) {
	for w := waitNone + 1; w < waits; w++ {
		q := &t.wheels[w]
		for q.count > 0 {
			if c := q.ready; c != nil {
				t.clear(c)
				if c.deadline <= now {
					return c, w
				}
				// It was set further ahead than the wheel reaches, because the
				// wheel was behind.
				t.insert(c, w, c.deadline, now)
				continue
			}
			if (q.at+1)*q.width > now {
				break
			}
			i := q.at % int64(len(q.buckets))
			q.ready, q.buckets[i] = q.buckets[i], nil
			for c := q.ready; c != nil; c = c.next {
				c.bucket = inReady
			}
			q.at++
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
			l.timers.insert(c, waitIdle, due, l.now)
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
	if s.ReadTimeout > 0 && took >= int64(s.ReadTimeout+l.timers.slack) {
		return false
	}
	rate := s.MinBodyRate
	if rate == 0 || took < int64(bodyGrace) {
		return true
	}
	return int64(len(in.buf)-in.framing.head) >= int64(float64(rate)*float64(took-int64(bodyGrace))/1e9)
}
