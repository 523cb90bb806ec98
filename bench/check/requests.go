package check

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"pinion/bench/peers"
	"pinion/bench/peers/work"
)

// random returns numbers for a purpose. They do not depend on what else was asked, so they
// are the same for all peers.
func (s *server) random(purpose string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose)) // never fails
	return rand.New(rand.NewPCG(s.Seed, h.Sum64()))
}

// exchanges returns requests of a route, no two of which have the same answer where the
// route can answer more than one thing. The first is the one of the scenarios.
func (s *server) exchanges(route string) (some []work.Exchange, err error) {
	random := s.random(route)
	add := func(e work.Exchange, failed error) { some, err = append(some, e), errors.Join(err, failed) }
	switch route {
	case work.RoutePing:
		add(work.NewPing(), nil)
	case work.RouteSleep:
		add(work.NewSleep(), nil)
	case work.RouteJSON:
		for _, id := range []int64{17, 18, 1 + random.Int64N(1e6), 1 + random.Int64N(1e12)} {
			add(work.NewJSON(id))
		}
	case work.RoutePost:
		for _, order := range []int64{17, 1, 1 + random.Int64N(1e6), 1 + random.Int64N(1e14)} {
			add(work.NewPost(order))
		}
	case work.RouteUsers:
		add(s.batch())
		for _, n := range []int{20, 1, 64} {
			ids := s.ids(random, n)
			if n == 64 {
				ids[n/2] = int64(peers.FixtureUsers) + 1 + random.Int64N(1000) // nobody's
			}
			add(work.NewUsers(s.users, ids))
		}
	}
	return some, err
}

// another returns some request of a route.
func (s *server) another(route string, random *rand.Rand) (work.Exchange, error) {
	switch route {
	case work.RoutePing:
		return work.NewPing(), nil
	case work.RouteSleep:
		return work.NewSleep(), nil
	case work.RouteJSON:
		return work.NewJSON(1 + random.Int64N(1e12))
	case work.RoutePost:
		return work.NewPost(1 + random.Int64N(1e14))
	case work.RouteUsers:
		return work.NewUsers(s.users, s.ids(random, 20))
	}
	return work.Exchange{}, fmt.Errorf("there is no route %q", route)
}

// ids returns those of n users.
func (s *server) ids(random *rand.Rand, n int) []int64 {
	known := s.users.Users()
	ids := make([]int64, 0, n)
	for _, i := range random.Perm(len(known))[:n] {
		ids = append(ids, known[i].ID)
	}
	return ids
}

// batch returns the exchange of the scenario with users.
func (s *server) batch() (work.Exchange, error) {
	_, list, _ := strings.Cut(s.Batch, "?ids=")
	ids, err := work.ParseIDs(nil, list)
	if err != nil {
		return work.Exchange{}, fmt.Errorf("target %q of a request for users: %w", s.Batch, err)
	}
	e, err := work.NewUsers(s.users, ids)
	if err == nil && e.Target != s.Batch {
		err = fmt.Errorf("target %q of a request for users, want one like %q", s.Batch, e.Target)
	}
	return e, err
}
