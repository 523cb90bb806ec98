package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"

	"github.com/valyala/fasthttp"
)

// FastHTTP serves by fasthttp.Server: a goroutine for each connection.
type FastHTTP struct {
	server *fasthttp.Server
	conns  *tracker
	cfg    Config

	mu      sync.Mutex
	ln      *listener
	stopped bool
}

var _ Transport = (*FastHTTP)(nil)

// NewFastHTTP prepares a server; nothing runs yet.
func NewFastHTTP(c Config) *FastHTTP {
	c.setDefaults(1) // the listener
	t := &FastHTTP{
		conns: newTracker(),
		cfg:   c,
		server: &fasthttp.Server{
			Name:               "pinion",
			Handler:            trimming(c.Handler),
			ErrorHandler:       onError(c.ErrorHandler),
			ExpectHandler:      onExpect(c),
			ReadTimeout:        c.ReadTimeout,
			WriteTimeout:       c.WriteTimeout,
			IdleTimeout:        c.IdleTimeout,
			ReadBufferSize:     c.MaxHeaderBytes,
			MaxRequestBodySize: c.MaxBodyBytes,

			// The listener refuses what is too many, in our words; a
			// connection it has just let go may still have its goroutine.
			Concurrency: 2 * c.MaxConns,
			// Answers given while stopping say Connection: close.
			CloseOnShutdown: true,
			// An endpoint names its type, or has no body.
			NoDefaultContentType: true,
			// No endpoint takes forms; a form body is a 415 like any other.
			DisablePreParseMultipartForm: true,
			// Do not put a client's bytes into our log.
			SecureErrorLogMessage: true,
			Logger:                printer{c.Logger},
		},
	}
	c.connections().Func(func() float64 { return float64(t.Connections()) }, "0")
	return t
}

// keptBody is how much of a request's body buffer stays with a connection, in
// bytes. fasthttp keeps all of it, however long the connection idles.
const keptBody = 4 << 10

func trimming(h fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		h(ctx)
		if len(ctx.Request.Body()) > keptBody {
			ctx.Request.ReleaseBody(keptBody)
		}
	}
}

// onError leaves clients that are gone alone, and marks the connections of the
// others: they may still be sending.
func onError(h func(*fasthttp.RequestCtx, error)) func(*fasthttp.RequestCtx, error) {
	return func(ctx *fasthttp.RequestCtx, err error) {
		if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
			return // no request, and nobody to answer
		}
		if c, ok := ctx.Conn().(*conn); ok {
			c.linger.Store(true)
		}
		h(ctx, err)
	}
}

// onExpect answers Expect: 100-continue. A body that is too large is refused
// before it is sent, which is what the header is for (RFC 9110, 10.1.1).
func onExpect(c Config) func(*fasthttp.RequestCtx) int {
	return func(ctx *fasthttp.RequestCtx) int {
		if c.MaxBodyBytes <= 0 || ctx.Request.Header.ContentLength() <= c.MaxBodyBytes {
			return fasthttp.StatusContinue
		}
		c.ErrorHandler(ctx, fasthttp.ErrBodyTooLarge)
		return ctx.Response.StatusCode()
	}
}

// Serve implements [Transport]. It takes one listener.
func (t *FastHTTP) Serve(lns ...net.Listener) error {
	if len(lns) != 1 {
		return fmt.Errorf("serve: want one listener, got %d", len(lns))
	}
	l := &listener{
		Listener: lns[0], conns: t.conns, log: t.cfg.Logger,
		maxConns: t.cfg.MaxConns, overload: t.cfg.Overload,
	}
	t.mu.Lock()
	t.ln = l
	stopped := t.stopped
	t.mu.Unlock()
	if stopped {
		return l.Close()
	}
	if err := t.server.Serve(l); err != nil {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}

// Shutdown implements [Transport].
func (t *FastHTTP) Shutdown(ctx context.Context) error {
	// fasthttp knows a listener only once Serve runs, and its own shutdown
	// does nothing before: close the listener here, and for good.
	t.mu.Lock()
	t.stopped = true
	l := t.ln
	t.mu.Unlock()
	if l != nil {
		if err := l.Close(); err != nil {
			t.cfg.Logger.Warn("closing the listener", "error", err)
		}
	}
	err := t.server.ShutdownWithContext(ctx)
	if err == nil {
		return nil
	}
	left := t.conns.closeAll()
	return fmt.Errorf("stop serving: %d connections cut off: %w", left, err)
}

// Connections implements [Transport].
func (t *FastHTTP) Connections() int { return t.conns.len() }

// printer gives fasthttp's log lines to slog. They are about connections, of
// which a client can break as many as it likes: debug.
type printer struct{ log *slog.Logger }

// Printf implements fasthttp.Logger.
func (p printer) Printf(format string, args ...any) {
	p.log.Debug("fasthttp: " + fmt.Sprintf(format, args...))
}
