package check

import (
	"context"
	"fmt"
	"time"

	"pinion/bench/peers"
	"pinion/bench/peers/work"
)

// patience is how long an answer may take. It ends a check of a server that gives none, and
// is no test of how fast one is.
const patience = 30 * time.Second

// Config says what to check.
type Config struct {
	Addr  string // where the server listens, host:port
	Peer  *peers.Peer
	Users string // file of peers.Fixture
	// Batch is the target of a request for users, as the scenario of that name sends it. For
	// peers with that route.
	Batch string
	// Seed chooses what else is asked: the same of every peer with the route.
	Seed uint64
	// Closes is true of a server that was started to close connections when it is asked to,
	// which all do but those that are Canned.
	Closes bool
}

// Error says what a server got wrong.
type Error struct {
	Route     string // of the routes of package work; "close" and "unknown" beside them
	What      string // "status", "body", "Date", …
	Want, Got string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("route %s: %s: want %.300q, got %.300q", e.Route, e.What, e.Want, e.Got)
}

// server is what is checked.
type server struct {
	Config
	users *work.Store
}

// Check proves that a server answers as the peer should. It returns, for each route of the
// peer, the size of an answer to what the scenarios send, head and body, in bytes: to
// GET /api/ping, GET /json?id=17, the Batch, the purchase 17 and GET /sleep, without
// Connection: close. Errors about answers are an *Error.
func Check(ctx context.Context, c Config) (map[string]int, error) {
	store, err := work.Load(c.Users)
	if err != nil {
		return nil, err
	}
	s := &server{Config: c, users: store}
	sizes, err := s.check(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err() // and not what that did to a connection
	}
	if err != nil {
		return nil, fmt.Errorf("%s (seed %d): %w", c.Peer.Name, c.Seed, err)
	}
	return sizes, nil
}

func (s *server) check(ctx context.Context) (map[string]int, error) {
	var all, measured []work.Exchange
	for _, route := range s.routes() {
		some, err := s.exchanges(route)
		if err != nil {
			return nil, err
		}
		all, measured = append(all, some...), append(measured, some[0])
	}
	// The connection that is opened first is the last to be looked at.
	first, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer first.Close() //nolint:errcheck // it was only read from
	before, err := first.ask(&all[0])
	if err != nil {
		return nil, err
	}
	sizes, err := s.alone(ctx, all)
	if err != nil {
		return nil, err
	}
	steps := []func() error{
		func() error { return s.keptAlive(ctx, all) },
		func() error { return s.pipelined(ctx, all) },
		func() error { return s.atOnce(ctx) },
	}
	if !s.Peer.Canned {
		steps = append(steps, func() error { return s.split(ctx, measured) }, func() error { return s.unknown(ctx) })
	}
	if !s.Peer.Canned || s.Closes {
		steps = append(steps, func() error { return s.closed(ctx, all) })
	}
	if s.Peer.Has(work.RouteSleep) {
		steps = append(steps, func() error { return s.naps(ctx) })
	}
	steps = append(steps, func() error { return renewed(ctx, first, &all[0], before.date()) })
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return sizes, nil
}

// routes returns those of the peer.
func (s *server) routes() (routes []string) {
	for _, route := range peers.Routes() {
		if s.Peer.Has(route) {
			routes = append(routes, route)
		}
	}
	return routes
}
