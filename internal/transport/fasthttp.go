package transport

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/valyala/fasthttp"
)

// FastHTTP serves by fasthttp.Server: a goroutine for each connection.
type FastHTTP struct {
	server *fasthttp.Server
	conns  *tracker
	log    *slog.Logger
}

var _ Transport = (*FastHTTP)(nil)

// NewFastHTTP prepares a server; nothing runs yet.
func NewFastHTTP(c Config) *FastHTTP {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return &FastHTTP{
		conns: newTracker(),
		log:   c.Logger,
		server: &fasthttp.Server{
			Name:               "pinion",
			Handler:            c.Handler,
			ErrorHandler:       lingering(c.ErrorHandler),
			ReadTimeout:        c.ReadTimeout,
			WriteTimeout:       c.WriteTimeout,
			IdleTimeout:        c.IdleTimeout,
			ReadBufferSize:     c.MaxHeaderBytes,
			MaxRequestBodySize: c.MaxBodyBytes,
			Concurrency:        c.MaxConns,

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
}

// lingering marks the connection of an error answer: its client may still be
// sending.
func lingering(h func(*fasthttp.RequestCtx, error)) func(*fasthttp.RequestCtx, error) {
	return func(ctx *fasthttp.RequestCtx, err error) {
		if c, ok := ctx.Conn().(*conn); ok {
			c.linger.Store(true)
		}
		h(ctx, err)
	}
}

// Serve implements [Transport].
func (t *FastHTTP) Serve(ln net.Listener) error {
	if err := t.server.Serve(&listener{Listener: ln, conns: t.conns, log: t.log}); err != nil {
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	}
	return nil
}

// Shutdown implements [Transport].
func (t *FastHTTP) Shutdown(ctx context.Context) error {
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
