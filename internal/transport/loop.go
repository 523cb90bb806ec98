package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"

	"pinion/engine"
)

// Loop serves by package engine: an event loop for each CPU.
type Loop struct {
	server *engine.Server
}

var _ Transport = (*Loop)(nil)

// descriptorsPerLoop are a listener, two epoll instances, an eventfd and a
// timerfd.
const descriptorsPerLoop = 5

// NewLoop prepares a server of so many loops; nothing runs yet. The handler must
// call engine.MayBlock before it may block.
func NewLoop(c Config, loops int) *Loop {
	c.setDefaults(descriptorsPerLoop * loops)
	t := &Loop{server: &engine.Server{
		Name:                 "pinion",
		Handler:              c.Handler,
		NonBlocking:          true,
		ErrorHandler:         c.ErrorHandler,
		Overload:             c.Overload,
		ReadTimeout:          c.ReadTimeout,
		WriteTimeout:         c.WriteTimeout,
		IdleTimeout:          c.IdleTimeout,
		MaxHeaderBytes:       c.MaxHeaderBytes,
		MaxRequestBodySize:   c.MaxBodyBytes,
		MaxConns:             c.MaxConns,
		NoDefaultContentType: true,
		KeepSocketFiles:      c.KeepSocketFile,
		Loops:                loops,
		Logger:               slog.NewLogLogger(c.Logger.Handler(), slog.LevelWarn),
	}}
	connections := c.connections()
	requests := c.Stats.Counter("engine_requests_total",
		"Requests of a loop: answered inline, offloaded to a goroutine, or promoted to fasthttp.Server.", "loop", "path")
	for i := range loops {
		loop := strconv.Itoa(i)
		connections.Func(func() float64 { return float64(t.stats(i).Conns) }, loop)
		requests.Func(func() uint64 { return t.stats(i).Inline }, loop, "inline")
		requests.Func(func() uint64 { return t.stats(i).Offloaded }, loop, "offload")
		requests.Func(func() uint64 { return t.stats(i).Promoted }, loop, "promoted")
	}
	return t
}

// stats are the figures of loop i, all zero before Serve.
func (t *Loop) stats(i int) engine.Stats {
	if all := t.server.Stats(); i < len(all) {
		return all[i]
	}
	return engine.Stats{}
}

// Serve implements [Transport].
func (t *Loop) Serve(lns ...net.Listener) error {
	if err := t.server.Serve(lns...); !errors.Is(err, engine.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// Shutdown implements [Transport].
func (t *Loop) Shutdown(ctx context.Context) error {
	before := t.Connections()
	if err := t.server.Shutdown(ctx); err != nil {
		return fmt.Errorf("stop serving: up to %d connections cut off: %w", before, err)
	}
	return nil
}

// Connections implements [Transport].
func (t *Loop) Connections() int {
	n := 0
	for _, s := range t.server.Stats() {
		n += s.Conns
	}
	return n
}
