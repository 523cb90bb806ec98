package transport

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"pinion/internal/stats"
)

// Transport serves one address.
type Transport interface {
	// Serve answers the connections of what Listen has opened, until
	// Shutdown, and returns nil then. It owns the listeners.
	Serve(lns ...net.Listener) error

	// Shutdown closes the listeners and every idle connection, lets open
	// requests finish, and returns when no connection is left. When ctx ends
	// first, it closes the rest and returns an error that wraps its cause.
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
	// before it is closed: a whole HTTP/1.1 response of this status. Default
	// nil: nothing, or one without a body.
	Overload func(status int) []byte

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

	// KeepSocketFile leaves the file of a Unix listener in its place at the end: it
	// belongs to another process.
	KeepSocketFile bool

	// Stats receives engine_connections and, from a transport that has
	// loops, engine_requests_total. Default: a registry nobody reads.
	Stats *stats.Registry

	// Logger tells of what goes wrong with connections. Default
	// slog.Default().
	Logger *slog.Logger
}

// setDefaults fills what every transport needs. own is how many descriptors the
// transport takes for itself.
func (c *Config) setDefaults(own int) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Stats == nil {
		c.Stats = stats.NewRegistry(1)
	}
	if c.MaxConns <= 0 {
		c.MaxConns = fasthttp.DefaultConcurrency
	}
	if n, known := descriptors(); known && uint64(c.MaxConns) > left(n, own) {
		c.MaxConns = int(left(n, own))
		c.Logger.Debug("connections are bounded by the limit of open files", "connections", c.MaxConns, "open files", n)
	}
}

// left is how many of n descriptors connections may take: some are kept for files
// and sources, without which a server full of clients could not answer any.
func left(n uint64, own int) uint64 {
	kept := min(n/4, 256) + uint64(own)
	return max(n, kept+1) - kept
}

// connections registers the gauge that every transport has.
func (c *Config) connections() *stats.GaugeVec {
	return c.Stats.Gauge("engine_connections", "Open connections of a loop.", "loop")
}
