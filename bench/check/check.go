package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"pinion/bench/peers"
	"pinion/bench/peers/work"
)

// patience is how long an answer may take.
const patience = 5 * time.Second

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
	addr   string
	users  *work.Store
	dialer net.Dialer
	random *rand.Rand
}

// Check proves that the server at addr answers as the peer should. users is the file of
// Fixture. Seed chooses what is asked, so the same seed asks the same. It returns the size
// of an answer to each route, head and body, in bytes. Errors about answers are an *Error.
func Check(ctx context.Context, addr string, p *peers.Peer, users string, seed uint64) (map[string]int, error) {
	store, err := work.Load(users)
	if err != nil {
		return nil, err
	}
	s := &server{addr: addr, users: store, random: rand.New(rand.NewPCG(seed, 1))}
	sizes := map[string]int{}
	var all []work.Exchange
	for _, route := range peers.Routes() {
		if !p.Has(route) {
			continue
		}
		some, err := s.exchanges(route)
		if err != nil {
			return nil, err
		}
		for i := range some {
			n, err := s.alone(ctx, &some[i])
			if err != nil {
				return nil, fmt.Errorf("%s (seed %d): %w", p.Name, seed, err)
			}
			sizes[route] = max(sizes[route], n)
		}
		all = append(all, some...)
	}
	steps := []func(context.Context, []work.Exchange) error{s.keptAlive, s.pipelined}
	if !p.Canned {
		steps = append(steps, s.closed, s.unknown)
	}
	if p.Has(work.RoutePost) {
		steps = append(steps, s.split)
	}
	for _, step := range steps {
		if err := step(ctx, all); err != nil {
			return nil, fmt.Errorf("%s (seed %d): %w", p.Name, seed, err)
		}
	}
	return sizes, nil
}

// exchanges returns requests of a route, no two of which have the same answer where the
// route can answer more than one thing.
func (s *server) exchanges(route string) (some []work.Exchange, err error) {
	add := func(e work.Exchange, failed error) { some, err = append(some, e), errors.Join(err, failed) }
	switch route {
	case work.RoutePing:
		add(work.NewPing(), nil)
	case work.RouteSleep:
		add(work.NewSleep(), nil)
	case work.RouteJSON:
		for _, id := range []int64{17, 18, 1 + s.random.Int64N(1e6), 1 + s.random.Int64N(1e12)} {
			add(work.NewJSON(id))
		}
	case work.RoutePost:
		for _, order := range []int64{1, 1 + s.random.Int64N(1e6), 1 + s.random.Int64N(1e14)} {
			add(work.NewPost(order))
		}
	case work.RouteUsers:
		known := s.users.Users()
		for _, n := range []int{20, 20, 1, 64} {
			ids := make([]int64, 0, n)
			for _, i := range s.random.Perm(len(known))[:n] {
				ids = append(ids, known[i].ID)
			}
			if n == 64 {
				ids[n/2] = int64(peers.FixtureUsers) + 1 + s.random.Int64N(1000) // nobody's
			}
			add(work.NewUsers(s.users, ids))
		}
	}
	return some, err
}

// dial connects. The connection ends with ctx, and is closed by the caller.
func (s *server) dial(ctx context.Context) (*conn, error) {
	c, err := s.dialer.DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return newConn(c), nil
}

// on runs f with a connection.
func (s *server) on(ctx context.Context, f func(*conn) error) error {
	c, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // it was only read from
	return f(c)
}

// alone sends a request on a connection of its own, and returns the size of the answer.
func (s *server) alone(ctx context.Context, e *work.Exchange) (n int, err error) {
	err = s.on(ctx, func(c *conn) error {
		if _, err := c.Write(e.Append(nil, s.addr)); err != nil {
			return err
		}
		n, err = c.expect(e)
		return err
	})
	return n, err
}

// keptAlive sends all requests on one connection.
func (s *server) keptAlive(ctx context.Context, all []work.Exchange) error {
	return s.on(ctx, func(c *conn) error {
		for i := range all {
			if _, err := c.Write(all[i].Append(nil, s.addr)); err != nil {
				return again(&all[i], err)
			}
			if _, err := c.expect(&all[i]); err != nil {
				return again(&all[i], err)
			}
		}
		// One more, since there may have been just one.
		if _, err := c.Write(all[0].Append(nil, s.addr)); err != nil {
			return again(&all[0], err)
		}
		_, err := c.expect(&all[0])
		return again(&all[0], err)
	})
}

// again says what an error of a connection means that had been answered on before.
func again(e *work.Exchange, err error) error {
	var wrong *Error
	if err == nil || errors.As(err, &wrong) && wrong.What != "answer" {
		return err
	}
	return &Error{e.Route, "a further request on a connection", "an answer", err.Error()}
}

// depth is how many requests are pipelined.
const depth = 16

// pipelined sends requests in one write. Their answers must come in the same order.
func (s *server) pipelined(ctx context.Context, all []work.Exchange) error {
	order := s.random.Perm(len(all))
	var requests []byte
	for i := range depth {
		requests = all[order[i%len(order)]].Append(requests, s.addr)
	}
	return s.on(ctx, func(c *conn) error {
		if _, err := c.Write(requests); err != nil {
			return err
		}
		for i := range depth {
			e := &all[order[i%len(order)]]
			if _, err := c.expect(e); err != nil {
				var wrong *Error
				if errors.As(err, &wrong) {
					return &Error{e.Route, fmt.Sprintf("answer %d of %d to pipelined requests: %s", i+1, depth, wrong.What), wrong.Want, wrong.Got}
				}
				return err
			}
		}
		return nil
	})
}

// closed asks for the end of the connection.
func (s *server) closed(ctx context.Context, all []work.Exchange) error {
	return s.on(ctx, func(c *conn) error {
		if _, err := c.Write(all[0].Append(nil, s.addr, "Connection: close")); err != nil {
			return err
		}
		if _, err := c.expect(&all[0]); err != nil {
			return err
		}
		if b, err := c.in.ReadByte(); !errors.Is(err, io.EOF) {
			return &Error{"close", "what follows the answer to a request with Connection: close", "the end of the connection", fmt.Sprintf("%q, %v", b, err)}
		}
		return nil
	})
}

// unknown asks for a path that is not there.
func (s *server) unknown(ctx context.Context, _ []work.Exchange) error {
	return s.on(ctx, func(c *conn) error {
		e := work.Exchange{Route: "unknown", Method: "GET", Target: fmt.Sprintf("/no/%d", s.random.Int64N(1e6))}
		if _, err := c.Write(e.Append(nil, s.addr)); err != nil {
			return err
		}
		a, err := c.read()
		if err != nil {
			return err
		}
		if a.status != 404 {
			return &Error{e.Route, "status", "404", fmt.Sprint(a.status)}
		}
		return nil
	})
}

// split sends a request with a body in two writes.
func (s *server) split(ctx context.Context, all []work.Exchange) error {
	for i := range all {
		e := &all[i]
		if e.Route != work.RoutePost {
			continue
		}
		err := s.on(ctx, func(c *conn) error {
			request := e.Append(nil, s.addr)
			cut := bytes.Index(request, []byte("\r\n\r\n")) + 4 + len(e.Body)/2
			if _, err := c.Write(request[:cut]); err != nil {
				return err
			}
			time.Sleep(20 * time.Millisecond) // so that the pieces are read apart
			if _, err := c.Write(request[cut:]); err != nil {
				return err
			}
			_, err := c.expect(e)
			return err
		})
		if err != nil {
			return fmt.Errorf("a body in two pieces: %w", err)
		}
	}
	return nil
}
