package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/valyala/fasthttp"

	"pinion/engine"
	"pinion/handlers"
	"pinion/internal/accesslog"
	"pinion/internal/admin"
	"pinion/internal/cell"
	"pinion/internal/config"
	"pinion/internal/health"
	"pinion/internal/listen"
	"pinion/internal/logsink"
	"pinion/internal/stats"
	"pinion/internal/transport"
	"pinion/users"
)

const logDroppedHelp = "Lines of the log that were lost: stderr did not take them."

// server is one process that serves. open fills its fields, close lets them go.
type server struct {
	cfg       *config.Config
	log       *slog.Logger
	sink      *logsink.Writer
	tokens    *handlers.Tokens
	accessLog io.Writer
	place     *place       // nil in a cell
	cell      *cell.Member // nil in a process that is all there is

	stats     *stats.Registry
	health    *health.State
	lines     *accesslog.Log
	sources   sources
	users     *users.Service
	admin     *admin.Server
	adminDone chan error
	lns       []net.Listener
	transport transport.Transport
	drained   bool // no request is open any more
}

// run serves until a signal ends it.
func (s *server) run(until func() (context.Context, func())) error {
	stop, restore := until()
	defer restore()
	defer s.closeInTime()
	if err := s.open(stop); err != nil {
		if stop.Err() != nil {
			return nil // it was told to stop while it started
		}
		return err
	}
	return s.serve(stop)
}

// open acquires everything that can fail before the first request. ctx ends it
// early. After an error, close lets go of what was acquired.
func (s *server) open(ctx context.Context) error {
	s.stats = stats.NewRegistry(runtime.GOMAXPROCS(0))
	s.stats.Counter("log_dropped_total", logDroppedHelp).Func(s.sink.Dropped)
	s.health = health.New(health.Config{Ping: s.canServe, Log: s.log})
	s.lines = accesslog.New(s.accessLogConfig())

	// The ports come first: one that is taken is found before a database is
	// made, and the private one answers while it is filled. Connections to the
	// public one wait until then.
	if err := s.listen(ctx); err != nil {
		return err
	}
	if err := s.openAdmin(ctx); err != nil {
		return err
	}
	if err := s.sources.open(ctx, s.cfg, int(s.of()), s.stats, s.log); err != nil {
		return err
	}
	if err := s.sources.fill(ctx, s.cfg.Demo, s.log); err != nil {
		return err
	}
	c := users.Config{
		L1Bytes: int64(s.cfg.L1Bytes) / s.of(), Stats: s.stats, Log: s.log,
		// Shorter than what a request has: a part that does not come in time is
		// left out of an answer, rather than late with it.
		LoadTimeout: s.cfg.RequestTimeout * 4 / 5,
		Limits: users.Limits{
			SQL:        users.SourceLimits{Timeout: s.cfg.DBTimeout, InFlight: s.sources.dbConns},
			Attributes: users.SourceLimits{Timeout: s.cfg.RedisTimeout},
			Members:    users.SourceLimits{Timeout: s.cfg.MembersTimeout},
			Shared:     users.SourceLimits{Timeout: s.cfg.RedisTimeout},
		},
	}
	if s.cell != nil {
		c.Announce = s.cell.Announce
	}
	s.users = s.sources.join(c)
	if s.cell != nil {
		s.cell.OnRemoval(s.users.Forget)
		s.cell.OnFlush(s.users.Flush)
	}
	if err := s.openTransport(); err != nil {
		return err
	}
	return s.stats.Err() // two rooms that disagree about a metric
}

// of is among how many processes like this one the limits of the configuration
// are divided.
func (s *server) of() int64 {
	if s.cell == nil {
		return 1
	}
	return int64(s.cell.Of())
}

func (s *server) accessLogConfig() accesslog.Config {
	c := accesslog.Config{Mode: s.cfg.AccessLog, Out: s.accessLog, Stats: s.stats, Log: s.log}
	if s.cell != nil {
		i := s.cell.Index()
		c.Cell, c.BatchBytes = &i, accesslog.MinBatchBytes // the others write to the same place
	}
	return c
}

// listen opens the public port: one listener, or one for each loop. A cell has
// them from its supervisor.
func (s *server) listen(ctx context.Context) error {
	if s.cell != nil {
		if s.lns = s.cell.Listeners(); len(s.lns) == 0 {
			return errors.New("the supervisor gave this cell no listener")
		}
		return nil
	}
	addr, err := listen.Parse(s.cfg.Addr)
	if err != nil {
		return s.cfg.Wrong("addr", err)
	}
	if s.cfg.Engine == config.EngineLoop && !addr.Unix() {
		if s.lns, err = engine.Listen(addr.String(), runtime.GOMAXPROCS(0)); err != nil {
			return err
		}
		steer(s.cfg.Steer, s.place, [][]net.Listener{s.lns}, s.stats, s.log)
		return nil
	}
	ln, err := addr.Listen(ctx)
	if err != nil {
		return err
	}
	s.lns = []net.Listener{ln}
	return nil
}

// openTransport makes the API and what serves it.
func (s *server) openTransport() error {
	o := handlers.Options{
		Users: s.users, Ready: s.health.Check, Tokens: s.tokens, RequestTimeout: s.cfg.RequestTimeout,
		AccessLog: s.lines, Stats: s.stats, Logger: s.log,
	}
	if s.cfg.Engine == config.EngineLoop {
		o.MayBlock, o.Context, o.Shard = engine.MayBlock, engine.Context, loopOf
	}
	api, err := handlers.New(o)
	if err != nil {
		return err
	}
	c := transport.Config{
		Handler: api.Serve, ErrorHandler: api.ServeError, Overload: api.Overload,
		ReadTimeout: s.cfg.ReadTimeout, WriteTimeout: s.cfg.WriteTimeout, IdleTimeout: s.cfg.IdleTimeout,
		MaxHeaderBytes: int(s.cfg.MaxHeaderBytes), MaxBodyBytes: handlers.MaxBodyBytes,
		MaxConns: max(1, s.cfg.MaxConns/int(s.of())), KeepSocketFile: s.cell != nil,
		Stats: s.stats, Logger: s.log,
	}
	if s.cfg.Engine == config.EngineLoop {
		s.transport = transport.NewLoop(c, s.loops())
	} else {
		s.transport = transport.NewFastHTTP(c)
	}
	return nil
}

// loops is how many loops serve: one for each listener, or for each CPU where
// there is one listener for all.
func (s *server) loops() int {
	if n := len(s.lns); n > 1 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// loopOf is the number of a request's loop.
func loopOf(ctx *fasthttp.RequestCtx) uint64 {
	i, _ := engine.Loop(ctx) // 0 for a promoted request
	return uint64(i)
}

// canServe is what readiness asks. The database has less time than the probe: what is
// cached counts only once it is known that the database does not answer.
func (s *server) canServe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, health.DefaultTimeout/2)
	defer cancel()
	return s.users.Ready(ctx)
}

// loadTokens reads who may write.
func loadTokens(cfg *config.Config) (*handlers.Tokens, error) {
	tokens := new(handlers.Tokens)
	if cfg.Demo > 0 {
		tokens.Allow("demo", handlers.DemoToken)
	}
	if cfg.Tokens == "" {
		return tokens, nil
	}
	f, err := os.Open(cfg.Tokens)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	if err := tokens.Read(f); err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Tokens, err)
	}
	if tokens.Empty() {
		return nil, fmt.Errorf("%s: %w: it lists none", cfg.Tokens, handlers.ErrTokens)
	}
	return tokens, nil
}

// openAdmin opens the private port and serves it from now on.
func (s *server) openAdmin(ctx context.Context) error {
	if s.cfg.Admin == "" {
		return nil
	}
	c := admin.Config{Addr: s.cfg.Admin, Stats: s.stats, Ready: s.health.Check, Version: version, Log: s.log}
	if s.cell != nil {
		c.Listener = s.cell.Admin() // behind the supervisor's port
	}
	private := admin.New(c)
	if err := private.Listen(ctx); err != nil {
		return err
	}
	s.admin, s.adminDone = private, make(chan error, 1)
	go func() { s.adminDone <- private.Serve() }()
	if s.cell == nil {
		s.log.Info("private port open", "addr", private.Addr())
	}
	return nil
}

// serve answers requests until stop ends, then drains.
func (s *server) serve(stop context.Context) error {
	done := make(chan error, 1)
	go func() { done <- s.transport.Serve(s.lns...) }()
	s.health.SetReady()
	if s.cell != nil {
		if err := s.cell.Ready(); err != nil {
			s.log.Warn("the supervisor cannot be told", "error", err)
		}
	}
	s.log.Info("serving", "addr", s.lns[0].Addr(), "engine", s.cfg.Engine, "version", version)

	var failed error
	select {
	case err := <-done:
		return err // nobody asked it to end
	case failed = <-s.adminDone: // nor the private port; but open requests come first
	case <-stop.Done():
	}
	s.health.SetDraining()
	if s.cell != nil {
		_ = s.cell.Draining() // a supervisor that is gone takes this process along
	}
	s.log.Info("draining", "delay", s.cfg.DrainDelay, "timeout", s.cfg.DrainTimeout)
	select {
	case err := <-done:
		return err
	case <-time.After(s.cfg.DrainDelay):
	}
	s.log.Info("closing listener", "connections", s.transport.Connections())
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.DrainTimeout)
	defer cancel()
	if err := s.transport.Shutdown(ctx); err != nil {
		s.log.Warn("drain ran out of time", "error", err)
		return failed // a handler that does not return must not keep the process
	}
	s.drained = true
	return errors.Join(failed, <-done)
}

// lastWords bounds what is left to do after the drain.
const lastWords = time.Second

// closeInTime closes, for so long: what a source does not let go of by then ends
// with the process, as it would by kill -9, which loses nothing that was answered.
func (s *server) closeInTime() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.close()
	}()
	select {
	case <-closed:
	case <-time.After(2 * lastWords):
		s.log.Warn("not everything could be closed in time")
	}
}

// close lets go of everything that open acquired. The private port outlives
// the public one, so that the end can be watched.
func (s *server) close() {
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	var errs []error
	for _, ln := range s.lns {
		_ = ln.Close() // the transport has closed it, if it ran
	}
	if s.lines != nil {
		errs = append(errs, s.lines.Close(ctx))
	}
	if s.admin != nil {
		errs = append(errs, s.admin.Shutdown(ctx))
	}
	errs = append(errs, s.sources.close())
	if err := errors.Join(errs...); err != nil {
		s.log.Warn("closing", "error", err)
	}
	if s.transport != nil {
		s.log.Info("stopped")
	}
	if s.cell != nil && s.drained {
		s.cell.Close() // which says that all it has written was announced
	}
}
