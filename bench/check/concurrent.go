package check

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"pinion/bench/peers/work"
)

// several runs f with n connections.
func (s *server) several(ctx context.Context, n int, f func([]*conn) error) error {
	conns := make([]*conn, 0, n)
	defer func() {
		for _, c := range conns {
			_ = c.Close() // it was only read from
		}
	}()
	for range n {
		c, err := s.dial(ctx)
		if err != nil {
			return err
		}
		conns = append(conns, c)
	}
	return f(conns)
}

const (
	// crowd is how many connections are asked on at once, in so many rounds.
	crowd  = 32
	rounds = 4
)

// atOnce asks on many connections before it reads an answer, something else on each, so that
// an answer is seen which goes to another connection or is put together of two. In the last
// rounds each connection gets its requests in one write.
func (s *server) atOnce(ctx context.Context) error {
	var exchanges [2 * rounds][crowd]work.Exchange
	routes := s.routes()
	random := map[string]*rand.Rand{}
	for _, route := range routes {
		random[route] = s.random("at once " + route)
	}
	for round := range exchanges {
		for i := range crowd {
			route := routes[(round+i)%len(routes)]
			var err error
			if exchanges[round][i], err = s.another(route, random[route]); err != nil {
				return err
			}
		}
	}
	return s.several(ctx, crowd, func(conns []*conn) error {
		for round := range rounds {
			if err := crossed(conns, exchanges[round:round+1]); err != nil {
				return err
			}
		}
		return crossed(conns, exchanges[rounds:])
	})
}

// crossed sends all rounds, and reads the answers.
func crossed(conns []*conn, exchanges [][crowd]work.Exchange) error {
	where := fmt.Sprintf("an answer on %d connections at once", crowd)
	for i, c := range conns {
		var requests []byte
		for round := range exchanges {
			requests = exchanges[round][i].Append(requests, c.host)
		}
		if err := c.send(requests); err != nil {
			return among(where, &Error{exchanges[0][i].Route, "answer", "one that can be read", err.Error()})
		}
	}
	for i, c := range conns {
		for round := range exchanges {
			if _, err := c.expect(&exchanges[round][i], false); err != nil {
				return among(where, err)
			}
		}
	}
	return nil
}

const (
	// sleepers is how many connections sleep at once. They must take less time than would be
	// needed if no more than four of them slept together.
	sleepers = 128
	together = sleepers * work.Nap / 4
	// tries is how often a busy host may be too slow for that. One time proves it.
	tries = 50
)

// naps proves that the route that sleeps does it, and that meanwhile others can, too.
func (s *server) naps(ctx context.Context) error {
	e := work.NewSleep()
	err := s.on(ctx, func(c *conn) error {
		for range tries {
			began := time.Now()
			if _, err := c.ask(&e); err != nil {
				return again(&e, err)
			}
			if took := time.Since(began); took < work.Nap {
				return &Error{e.Route, "time", fmt.Sprintf("%v at least", work.Nap), took.String()}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.several(ctx, sleepers, func(conns []*conn) error {
		var least time.Duration
		for try := range tries {
			began := time.Now()
			for _, c := range conns {
				if err := c.send(e.Append(nil, c.host)); err != nil {
					return err
				}
			}
			for _, c := range conns {
				if _, err := c.expect(&e, false); err != nil {
					return among(fmt.Sprintf("an answer on %d connections at once", sleepers), err)
				}
			}
			took := time.Since(began)
			if took < together {
				return nil
			}
			if try == 0 || took < least {
				least = took
			}
		}
		return &Error{e.Route, fmt.Sprintf("time of %d at once", sleepers), fmt.Sprintf("less than %v", together), least.String()}
	})
}
