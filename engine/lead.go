package engine

import (
	"bufio"

	"github.com/valyala/fasthttp"
)

// Leader and followers.
//
// One goroutine leads a loop: it alone touches the loop's fields. Before a
// handler may block, its goroutine offers the loop and queues a successor. If
// the handler returns before the successor ran, it takes the loop back with one
// compare-and-swap, and no goroutine was switched. If the handler blocked, the
// successor leads on with the rest of the batch, and the handler's goroutine
// follows: it sends the answer itself, gives the connection back and ends.
//
// Everything a successor needs is in the loop before the offer; everything the
// follower needs is in its exchange and its connection, which nobody else
// touches while the connection is busy.

// offer puts the loop up for a successor. Only the leader calls it, from within
// a handler.
func (l *loop) offer(x *exchange) {
	c := x.conn
	_ = l.bw.Flush() // the answers to earlier requests need not wait
	if len(l.rest) > 0 {
		l.hold(c, l.rest)
		l.rest = nil
	}
	x.handed = true
	if c.is(halfClosed) {
		l.timers.set(c, waitGone, l.now) // no event will tell of it any more
	}
	c.state.Store(busy)
	l.offers++
	x.offer = l.offers
	l.owner.Store(x.offer)
	if l.queued.CompareAndSwap(false, true) {
		go l.successor()
	}
}

// succeed leads the loop if it is still on offer.
func (l *loop) succeed() {
	l.queued.Store(false) // before the look at owner: an offer after it queues anew
	if offer := l.owner.Load(); offer != held && l.owner.CompareAndSwap(offer, held) {
		l.out.Add(1)
		l.count.offloaded++
		l.lead()
	}
}

// reclaim takes the loop back for the goroutine that offered it. It reports
// false when a successor took it, even if the loop is on offer again by now.
func (l *loop) reclaim(x *exchange) bool {
	if !l.owner.CompareAndSwap(x.offer, held) {
		return false
	}
	x.conn.state.Store(0)
	x.handed = false
	return true
}

// serve runs the handler for the request that f framed at the start of b. It
// reports true when another goroutine leads the loop now.
func (l *loop) serve(c *conn, b []byte, f *framing) (lost bool) {
	x := l.take(c)
	if err := l.fill(x, b, f); err != nil {
		l.put(x)
		l.refuse(c, err, nil)
		return false
	}
	l.step(c, b, f)
	c.requests++
	c.active = l.now
	if c.waiting != waitIdle {
		l.timers.set(c, waitIdle, l.now)
	}
	s := l.srv
	if !s.NonBlocking {
		l.offer(x)
	}
	x.run(s.Handler)
	// After TimeoutError a handler may still be writing to the ctx.
	if !x.failed && x.response() == &x.ctx.Response && x.ctx.Response.IsBodyStream() {
		// Reading the stream may block, and so may the client.
		if !x.handed {
			l.offer(x)
		}
		x.stream()
	}
	if x.handed && !l.reclaim(x) {
		x.finish()
		return true
	}
	l.count.inline++
	if !x.streamed {
		s.answer(x, l.bw)
	}
	l.put(x)
	return false
}

// fill parses the request into x. Nothing of x refers to b afterwards.
func (l *loop) fill(x *exchange, b []byte, f *framing) *Error {
	req := &x.ctx.Request
	if err := l.parseHead(x, f.headBytes(b)); err != nil {
		return &Error{Status: fasthttp.StatusBadRequest, Reason: "malformed head", Err: err}
	}
	if body := f.bodyBytes(b); len(body) > 0 {
		req.SetBody(body)
		x.body = len(body)
	}
	switch {
	case f.chunked:
		if f.body == 0 {
			req.Header.SetContentLength(0)
		}
		if trailers := f.trailers(b); len(trailers) > len("\r\n") {
			l.src.b = trailers
			l.br.Reset(&l.src)
			if err := req.Header.ReadTrailer(l.br); err != nil {
				return &Error{Status: fasthttp.StatusBadRequest, Reason: "malformed trailer", Err: err}
			}
		}
	case !f.hasLength && !req.Header.IsGet() && !req.Header.IsHead():
		req.Header.SetContentLength(0)
	}
	x.isHead = req.Header.IsHead()
	x.is10 = f.version == 0
	x.close = req.Header.ConnectionClose()
	return nil
}

// parseHead has fasthttp parse a complete head into x.
func (l *loop) parseHead(x *exchange, head []byte) error {
	l.src.b = head
	l.br.Reset(&l.src)
	return x.ctx.Request.Header.Read(l.br)
}

// answer writes the answer of x to w and marks the connection if it is to close
// afterwards. Whoever holds the connection calls it.
func (s *Server) answer(x *exchange, w *bufio.Writer) {
	if x.failed {
		_ = x.ctx.Response.CloseBodyStream()
		fresh := s.exchange()
		fresh.conn, fresh.loop, fresh.isHead = x.conn, x.loop, x.isHead
		fresh.ctx.Init2(fresh, s.logger(), false)
		s.answerError(fresh, w, errPanicked)
		if fresh.reset() {
			s.exchanges.Put(fresh)
		}
		x.conn.mark |= closing | polite
		return
	}
	if x.response() == &x.ctx.Response && x.ctx.Hijacked() {
		s.logf("engine: %v", errHijack)
		x.ctx.Response.Reset()
		x.ctx.Error(errHijack.Reason, errHijack.Status)
		x.close = true
	}
	s.complete(x, x.response())
	_ = x.response().Write(w) // output never fails, and there is no stream
}

// response returns what the client gets: after TimeoutError not the ctx's own
// response, which the handler may still be writing.
func (x *exchange) response() *fasthttp.Response {
	if resp := x.ctx.LastTimeoutErrorResponse(); resp != nil {
		if !x.stale.Load() {
			x.mu.Lock()
			x.stale.Store(true)
			x.mu.Unlock()
		}
		return resp
	}
	return &x.ctx.Response
}

// complete sets what the connection decides about the answer, as fasthttp does.
func (s *Server) complete(x *exchange, resp *fasthttp.Response) {
	c := x.conn
	if x.isHead {
		resp.SkipBody = true
	}
	switch {
	case x.close, resp.Header.ConnectionClose(), s.DisableKeepalive,
		s.MaxRequestsPerConn > 0 && c.requests >= uint32(s.MaxRequestsPerConn),
		s.stopping.Load() != running:
		resp.Header.SetConnectionClose()
		c.mark |= closing
	case x.is10:
		resp.Header.Set(fasthttp.HeaderConnection, "keep-alive")
	}
	if x.is10 && len(resp.Header.PeekTrailerKeys()) > 0 {
		// The only way to keep fasthttp from the chunked coding.
		resp.Header.SetProtocol([]byte("HTTP/1.0"))
	}
	if s.Name != "" && len(resp.Header.Server()) == 0 {
		resp.Header.SetServer(s.Name)
	}
}

// answerError writes the answer to a request that was refused.
func (s *Server) answerError(x *exchange, w *bufio.Writer, err *Error) {
	ctx := &x.ctx
	x.settled = true
	if s.ErrorHandler != nil {
		s.ErrorHandler(ctx, err)
	} else {
		ctx.Error(err.Reason, err.Status)
	}
	if s.Name != "" {
		ctx.Response.Header.SetServer(s.Name)
	}
	ctx.SetConnectionClose()
	ctx.Response.SkipBody = x.isHead
	_ = ctx.Response.Write(w)
}

// finish answers on a goroutine that lost the loop and gives the connection
// back.
func (x *exchange) finish() {
	s, l, c := x.loop.srv, x.loop, x.conn
	if !x.streamed || x.failed {
		w := s.writer()
		w.conn = c
		s.answer(x, w.buf)
		_ = w.buf.Flush()
		w.conn = nil
		s.writers.Put(w)
	}
	if x.reset() {
		s.exchanges.Put(x)
	}
	l.giveBack(c)
}

// giveBack returns a connection to its loop. Without anything to do for it that
// is one compare-and-swap, and the leader is not woken.
func (l *loop) giveBack(c *conn) {
	l.out.Add(-1)
	if c.mark&(closing|broken|unread) == 0 && len(c.out) == 0 && c.in == nil &&
		l.srv.stopping.Load() == running {
		c.active = l.clock.Load()
		if c.state.CompareAndSwap(busy, 0) {
			return
		}
	}
	for {
		first := l.given.Load()
		c.given = first
		if l.given.CompareAndSwap(first, c) {
			break
		}
	}
	if l.sleeping.CompareAndSwap(true, false) {
		l.poller.wake()
	}
}
