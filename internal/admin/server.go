package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"pinion/internal/listen"
	"pinion/internal/stats"
)

// Config is what a Server needs.
type Config struct {
	// Addr is host:port or unix:/path; see package listen.
	Addr string
	// Listener is served instead of one on Addr if it is not nil. The Server closes it.
	Listener net.Listener
	// Fleet makes this the private port of a supervisor: /metrics shows the series of
	// all cells, /health and /ready speak for all, and the query parameter cell sends a
	// request to one. nil: there are no cells.
	Fleet *Fleet
	// Stats is shown on /metrics; nil: only Go's, the process's and build_info.
	Stats *stats.Registry
	// Ready answers /ready: nil, or why not, in words that are shown; a nil func is always
	// ready. It is usually the Check of a health.State.
	Ready func(context.Context) error
	// Version is shown in build_info; "" means what the Go toolchain stamped.
	Version string
	// Log gets failures to serve; nil means slog.Default().
	Log *slog.Logger
}

// Limits of the private port. A profile or trace writes for as long as it was asked
// to run: net/http/pprof moves the write deadline by that time.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
)

// Server is the private port.
type Server struct {
	addr  string
	given net.Listener // Config.Listener
	fleet *fleet       // nil: there are no cells
	http  *http.Server
	ln    net.Listener
}

// New returns a Server that does not listen yet.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	var fleet *fleet
	if cfg.Fleet != nil {
		fleet = newFleet(cfg.Fleet, cfg.Log)
	}
	return &Server{
		addr:  cfg.Addr,
		given: cfg.Listener,
		fleet: fleet,
		http: &http.Server{
			Handler:           newHandler(cfg, fleet),
			ReadHeaderTimeout: readHeaderTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			ErrorLog:          slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn),
		},
	}
}

// Listen opens the port, or takes the Listener it was given. Requests wait until Serve.
func (s *Server) Listen(ctx context.Context) error {
	if s.given != nil {
		s.ln = s.given
		return nil
	}
	addr, err := listen.Parse(s.addr)
	if err != nil {
		return fmt.Errorf("admin: %w", err)
	}
	ln, err := addr.Listen(ctx)
	if err != nil {
		return fmt.Errorf("admin: %w", err)
	}
	s.ln = ln
	return nil
}

// Addr is where the Server listens; nil before Listen.
func (s *Server) Addr() net.Addr {
	if s.ln == nil {
		return nil
	}
	return s.ln.Addr()
}

// Serve answers requests until Shutdown, then returns nil. Listen comes first.
func (s *Server) Serve() error {
	if s.ln == nil {
		return errors.New("admin: Serve before Listen")
	}
	if err := s.http.Serve(s.ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin: %w", err)
	}
	return nil
}

// Shutdown closes the port and waits for open requests. When ctx ends first, it cuts
// them off and returns an error that wraps that of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("admin: shut down: %w", err)
		_ = s.http.Close() // the first error says it all
	}
	if s.ln != nil {
		_ = s.ln.Close() // nobody else does if Serve was never called; twice does no harm
	}
	return err
}
