package engine

const (
	maxKeptBuffer  = 16 << 10 // larger buffers go back to the garbage collector
	maxSpareInputs = 64
)

// input is what was received of requests that are not served yet.
type input struct {
	buf     []byte
	framing framing
	since   int64 // when its first byte came
}

// keep stores the beginning of a request.
func (l *loop) keep(c *conn, b []byte, f *framing) {
	now := l.now
	if c.in == nil {
		l.hold(c, b)
		c.in.framing = *f
	}
	in := c.in
	if in.since == 0 {
		in.since = now
		if c.requests == 0 {
			in.since = c.active // a new connection is under the clock from its start
		}
	}
	in.buf = in.framing.pack(in.buf)
	switch {
	case in.framing.head == 0:
		if c.waiting != waitHead {
			l.timers.set(c, waitHead, now)
		}
	case c.waiting != waitBody:
		l.timers.set(c, waitBody, now)
	}
}

// hold copies b into the connection's own buffer.
func (l *loop) hold(c *conn, b []byte) {
	if c.in == nil {
		c.in = l.spareInput()
		c.in.buf = append(c.in.buf, b...)
	}
}

// spareInput returns an empty input.
func (l *loop) spareInput() *input {
	if n := len(l.inputs); n > 0 {
		in := l.inputs[n-1]
		l.inputs = l.inputs[:n-1]
		return in
	}
	return &input{}
}

// dropInput gives the buffer of c back.
func (l *loop) dropInput(c *conn) {
	in := c.in
	c.in = nil
	if cap(in.buf) <= maxKeptBuffer && len(l.inputs) < maxSpareInputs {
		*in = input{buf: in.buf[:0]}
		l.inputs = append(l.inputs, in)
	}
}

// step takes the request that f framed off the front of b.
func (l *loop) step(c *conn, b []byte, f *framing) {
	rest := b[f.end():]
	l.rest = nil
	switch {
	case c.in == nil:
		l.rest = rest
	case len(rest) == 0:
		l.dropInput(c)
	default:
		if cap(c.in.buf) > maxKeptBuffer && len(rest) < cap(c.in.buf)/4 {
			rest = append([]byte(nil), rest...) // let go of a large body
		}
		c.in.buf, c.in.framing, c.in.since = rest, framing{}, 0
	}
}
