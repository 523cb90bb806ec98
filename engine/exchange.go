package engine

import (
	"context"
	"errors"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

var errNotStream = errors.New("engine: the connection of a request cannot be read from a handler")

// exchange is one request, its answer, and the net.Conn its handler sees. It is
// how MayBlock and the others find the loop: from ctx.Conn(), without a lookup.
// It is reused for other requests unless a handler outlived its answer.
type exchange struct {
	ctx  fasthttp.RequestCtx
	conn *conn
	loop *loop

	body     int // bytes of the request body
	isHead   bool
	is10     bool
	close    bool   // the client asked for it
	handed   bool   // the loop was offered to a successor
	offer    uint64 // by which number
	failed   bool   // the handler panicked
	settled  bool   // an error answer: no handler, and no loop to give away
	streamed bool   // the answer was a stream and is sent

	// A handler under fasthttp.TimeoutHandler can still run when its exchange
	// is over; mu makes what it may do then harmless.
	mu      sync.Mutex
	stale   atomic.Bool
	context context.Context
}

var _ net.Conn = (*exchange)(nil)

// of returns the exchange behind ctx; nil when another server runs the handler.
func of(ctx *fasthttp.RequestCtx) *exchange {
	x, _ := ctx.Conn().(*exchange)
	return x
}

// MayBlock says that the handler may block from here on. The loop that called
// it gets a new goroutine and serves its other connections; the handler goes on
// where it is, and its answer is sent when it returns. A call is cheap when the
// handler does not block after all, and does nothing when it is repeated or when
// ctx does not come from an engine.Server.
//
// It must be called on the goroutine on which the handler was called. In a
// Server.ErrorHandler, which may not block, it does nothing.
func MayBlock(ctx *fasthttp.RequestCtx) {
	if x := of(ctx); x != nil && !x.handed && !x.settled && !x.stale.Load() {
		x.loop.offer(x)
	}
}

// NonBlocking marks a handler, or one route of a handler, as one that never
// blocks unless it calls MayBlock first, so that it runs on its loop. When all
// of Server.Handler is like that, Server.NonBlocking says so for less. Like
// MayBlock, the marked handler must run on the goroutine on which the server
// called its own: not inside fasthttp.TimeoutHandler.
func NonBlocking(h fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if x := of(ctx); x != nil && x.handed && !x.settled && !x.stale.Load() {
			x.loop.reclaim(x)
		}
		h(ctx)
	}
}

// Context returns the context for work done for ctx. It ends when the client
// resets its connection, a moment (Server.HangupGrace) after the client closed
// its sending side, when a shutdown runs out of time, and when the handler has
// returned and its answer was handed to the kernel. context.Cause is
// ErrClientGone or ErrShutdown in the first three cases.
//
// A hang-up is noticed only after MayBlock. Called with a ctx of another server,
// or of a promoted request, it returns ctx itself, which does not end.
func Context(ctx *fasthttp.RequestCtx) context.Context {
	x := of(ctx)
	if x == nil {
		return ctx
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.context != nil {
		return x.context
	}
	c, cancel := context.WithCancelCause(context.Background())
	if x.stale.Load() {
		cancel(context.Canceled)
		return c
	}
	x.context = c
	x.conn.cancel.Store(&cancel)
	// The leader marks the connection before it looks for the context: one of
	// the two sees the other.
	if x.conn.state.Load()&gone != 0 {
		cancel(ErrClientGone)
	}
	return c
}

// Loop returns the number of the loop that ctx belongs to, from 0 to
// Server.Loops-1, for values that are kept by loop such as padded counters. It
// is false when ctx does not come from an engine.Server.
func Loop(ctx *fasthttp.RequestCtx) (int, bool) {
	if x := of(ctx); x != nil {
		return x.loop.id, true
	}
	return 0, false
}

// take returns an exchange for the next request of c.
func (l *loop) take(c *conn) *exchange {
	x := l.spare
	l.spare = nil
	if x == nil {
		x = l.srv.exchange()
	}
	x.conn, x.loop = c, l
	// Init2 also stamps the time, which is why it runs for each request.
	x.ctx.Init2(x, l.srv.logger(), false)
	if l.srv.NoDefaultContentType {
		x.ctx.Response.Header.SetNoDefaultContentType(true)
	}
	return x
}

// put takes an exchange back after its answer.
func (l *loop) put(x *exchange) {
	if x.reset() {
		if l.spare == nil {
			l.spare = x
		} else {
			l.srv.exchanges.Put(x)
		}
	}
}

// reset makes x ready for another request. It reports false when x must not be
// used again.
func (x *exchange) reset() bool {
	if cancel := x.conn.cancel.Load(); cancel != nil {
		x.conn.cancel.Store(nil)
		(*cancel)(context.Canceled)
	}
	if x.failed || x.stale.Load() || x.ctx.Hijacked() {
		return false
	}
	ctx := &x.ctx
	if !ctx.Response.IsBodyStream() && len(ctx.Response.Body()) > maxKeptBody {
		ctx.Response.ReleaseBody(maxKeptBody)
	}
	if x.body > maxKeptBody {
		ctx.Request.ReleaseBody(maxKeptBody)
	}
	ctx.Request.Reset()
	ctx.Response.Reset()
	poison(ctx)
	x.conn, x.loop, x.context = nil, nil, nil
	x.body, x.isHead, x.is10, x.close = 0, false, false, false
	x.handed, x.streamed, x.settled = false, false, false
	return true
}

// run calls the handler and survives its panics.
func (x *exchange) run(h fasthttp.RequestHandler) {
	returned := false
	defer func() {
		if returned {
			return
		}
		x.failed = true
		if r := recover(); r != nil {
			x.loop.srv.logf("engine: handler panicked: %v\n%s", r, debug.Stack())
			return
		}
		// The handler called runtime.Goexit: this goroutine ends here.
		x.exit()
	}()
	h(&x.ctx)
	returned = true
}

// exit finishes the exchange of a handler that ends its goroutine: a successor
// takes the loop, and the request ends as one that was offloaded.
func (x *exchange) exit() {
	l := x.loop
	l.srv.logf("engine: handler called runtime.Goexit")
	if !x.handed {
		l.offer(x)
	}
	x.finish()
}

// Read implements net.Conn; the engine reads the connection, not handlers.
func (x *exchange) Read([]byte) (int, error) { return 0, errNotStream }

// Write sends bytes ahead of the answer, after those of earlier requests. It
// serves fasthttp's EarlyHints.
func (x *exchange) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stale.Load() {
		return 0, net.ErrClosed
	}
	if !x.handed {
		return x.loop.bw.Write(p)
	}
	o := output{sys: x.loop.sys, conn: x.conn}
	return o.Write(p)
}

// Close makes the connection close after the answer.
func (x *exchange) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stale.Load() {
		return net.ErrClosed
	}
	x.close = true
	return nil
}

// LocalAddr implements net.Conn.
func (x *exchange) LocalAddr() net.Addr { return x.addresses().local }

// RemoteAddr implements net.Conn.
func (x *exchange) RemoteAddr() net.Addr { return x.addresses().remote }

func (x *exchange) addresses() addresses {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stale.Load() {
		return addresses{} // the descriptor may be somebody else's by now
	}
	c := x.conn
	if c.addrs == nil {
		c.addrs = &addresses{}
	}
	if c.addrs.remote == nil {
		c.addrs.remote = x.loop.sys.remote(int(c.fd))
	}
	if c.addrs.local == nil {
		c.addrs.local = x.loop.sys.local(int(c.fd))
	}
	return *c.addrs
}

// SetDeadline implements net.Conn and does nothing: the engine's own timeouts
// hold.
func (x *exchange) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing; see SetDeadline.
func (x *exchange) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing; see SetDeadline.
func (x *exchange) SetWriteDeadline(time.Time) error { return nil }
