package page

import (
	"math"
	"slices"

	"pinion/bench/record"
)

// perRound is the CPU time per request under one load, by peer and round.
type perRound map[string]map[int]float64

func (r *report) perRound(scenario string, conns int) perRound {
	c := perRound{}
	for _, peer := range r.measured(scenario, conns) {
		for _, s := range r.run.Of(record.Key{Scenario: scenario, Conns: conns, Peer: peer}) {
			if m := s.Micros(); m > 0 && finite(m) {
				if c[peer] == nil {
					c[peer] = map[int]float64{}
				}
				c[peer][s.Round] = m
			}
		}
	}
	return c
}

// effects returns the logarithm of what each of the peers costs, apart from what each round
// cost all of them alike: a median polish (Tukey, Exploratory Data Analysis, chapter 11) of
// the logarithms by peer and round.
func (c perRound) effects(peers []string) []float64 {
	const passes = 20 // far more than it takes
	of := make([]float64, len(peers))
	rounds := map[int]float64{}
	for _, p := range peers {
		for round := range c[p] {
			rounds[round] = 0
		}
	}
	for range passes {
		for i, p := range peers {
			var left []float64
			for round, v := range c[p] {
				left = append(left, math.Log(v)-rounds[round])
			}
			of[i] = record.SpreadOf(left).Median
		}
		var all []float64
		for round := range rounds {
			var left []float64
			for i, p := range peers {
				if v, ok := c[p][round]; ok {
					left = append(left, math.Log(v)-of[i])
				}
			}
			rounds[round] = record.SpreadOf(left).Median
			all = append(all, rounds[round])
		}
		middle := record.SpreadOf(all).Median
		for round := range rounds {
			rounds[round] -= middle
		}
	}
	return of
}

// What it takes to tell two peers apart.
const (
	chance       = 1.0 / 16 // at most, that as many rounds agree where there is no difference
	fewestRounds = 5        // that can agree so well, all of them
)

// cheaper tells two peers apart by a sign test, two-sided, on the rounds that both have: it
// is -1 where a costs less than b, 1 where it costs more, and 0 where that cannot be told.
func (c perRound) cheaper(a, b string) int {
	less, more := 0, 0
	for round, x := range c[a] {
		switch y, ok := c[b][round]; {
		case !ok:
		case x < y:
			less++
		case x > y:
			more++
		}
	}
	n, few := less+more, min(less, more)
	switch {
	case luck(few, n) > chance:
		return 0
	case less > more:
		return -1
	}
	return 1
}

// luck is how likely n tosses of a coin give a side at most few times, whichever it is.
func luck(few, n int) float64 {
	sum, ways := 0.0, 1.0 // to choose i of n
	for i := range few + 1 {
		sum += ways
		ways *= float64(n-i) / float64(i+1)
	}
	return min(1, 2*sum/math.Exp2(float64(n)))
}

// agreement is how far two runs agree about one load.
type agreement struct {
	scenario string
	conns    int
	peers    []string // in both runs, the order that of the page

	pairs         int
	first, second int // pairs that a run tells apart
	alike         int // of those, told by both the same way
	contrary      []string
	// apart is the distance of each peer's figures, relative to those of all peers: 0.1 is
	// ten per cent.
	apart []float64
}

// agree compares a load in two runs. Of fewer than three peers it cannot be said what moved
// all of them, and it returns nil.
func (r *report) agree(again *report, scenario string, conns int) *agreement {
	one, two := r.perRound(scenario, conns), again.perRound(scenario, conns)
	a := &agreement{scenario: scenario, conns: conns}
	a.peers = slices.DeleteFunc(slices.Clone(r.order), func(p string) bool { return one[p] == nil || two[p] == nil })
	if len(a.peers) < 3 {
		return nil
	}
	for i, p := range a.peers {
		for _, q := range a.peers[i+1:] {
			a.pairs++
			x, y := one.cheaper(p, q), two.cheaper(p, q)
			a.first += x * x
			a.second += y * y
			switch {
			case x*y > 0:
				a.alike++
			case x*y < 0:
				a.contrary = append(a.contrary, peerName(p)+" and "+peerName(q))
			}
		}
	}
	moved := two.effects(a.peers)
	for i, before := range one.effects(a.peers) {
		moved[i] -= before
	}
	all := record.SpreadOf(moved).Median
	for _, m := range moved {
		a.apart = append(a.apart, math.Abs(math.Expm1(m-all)))
	}
	return a
}

// greatest returns the greatest distance, and whose it is.
func (a *agreement) greatest() (float64, string) {
	far := slices.Max(a.apart)
	return far, a.peers[slices.Index(a.apart, far)]
}
