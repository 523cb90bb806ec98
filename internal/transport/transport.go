package transport

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// Transport serves one listener.
type Transport interface {
	// Serve answers connections until Shutdown. It owns the listener.
	Serve(ln net.Listener) error

	// Shutdown closes the listener and every idle connection, lets open
	// requests finish, and returns when no connection is left. When ctx ends
	// first, it closes the rest and returns an error that wraps ctx.Err().
	Shutdown(ctx context.Context) error

	// Connections is how many connections are open.
	Connections() int
}

// Config is what a transport needs to know. Zero durations mean no limit.
type Config struct {
	// Handler answers requests; it must not panic. Required.
	Handler fasthttp.RequestHandler

	// ErrorHandler answers what could not be read as a request. Required.
	ErrorHandler func(ctx *fasthttp.RequestCtx, err error)

	// Overload makes the bytes that a connection beyond MaxConns is sent
	// before it is closed: a whole HTTP/1.1 response. Default nil: none.
	Overload func() []byte

	// ReadTimeout is the time from a request's first byte to its last; for
	// the first request of a connection it begins when that is accepted.
	ReadTimeout time.Duration

	// WriteTimeout is the time an answer may take to be accepted by the peer.
	WriteTimeout time.Duration

	// IdleTimeout is how long a connection may wait between two requests.
	IdleTimeout time.Duration

	// MaxHeaderBytes is the largest request head, request line included.
	// Each connection that is being read holds a buffer of this size.
	// Default 4 KiB.
	MaxHeaderBytes int

	// MaxBodyBytes is the largest request body. Default 4 MiB.
	MaxBodyBytes int

	// MaxConns is how many connections are served at once; more get Overload
	// and are closed. It is lowered to what the limit of open files leaves
	// after a reserve for files and sources. Default 262,144.
	MaxConns int

	// Logger tells of what goes wrong with connections. Default
	// slog.Default().
	Logger *slog.Logger
}
