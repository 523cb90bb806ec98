// Package standard runs the server of net/http, for the peers that are a handler for it.
package standard

import (
	"context"
	"errors"
	"net/http"

	"pinion/bench/peers/work"
)

// Serve serves until ctx ends, with the timeouts of all peers.
func Serve(ctx context.Context, addr string, handler http.Handler) error {
	s := &http.Server{
		Addr: addr, Handler: handler,
		ReadTimeout: work.ReadTimeout, WriteTimeout: work.WriteTimeout, IdleTimeout: work.IdleTimeout,
	}
	done := make(chan error, 1)
	go func() { done <- s.ListenAndServe() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), work.StopTimeout)
	defer cancel()
	if err := s.Shutdown(stop); err != nil {
		return err
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
