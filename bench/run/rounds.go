package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"pinion/bench/record"
	"pinion/bench/scenario"
)

// enough is how many rounds there are at most for what stays unsteady.
const enough = 15

// base measures every group in each round, so that the rounds of a group are spread over
// the whole run.
func (l *lab) base(ctx context.Context) error {
	for round := range l.rounds {
		start := time.Now()
		for _, g := range l.groups {
			if g.Kind == scenario.Allocations && round > 0 || g.Kind == scenario.Idle && round >= idleRounds {
				continue
			}
			if err := l.round(ctx, g); err != nil {
				return err
			}
		}
		l.run.Rounds = round + 1
		if err := l.out.keep(l.run); err != nil {
			return err
		}
		took := time.Since(start)
		if round+1 < l.rounds && time.Since(l.start)+took > l.budget {
			l.run.Method = append(l.run.Method, fmt.Sprintf(
				"There are %d rounds and not %d: another would not have ended within %v.", round+1, l.rounds, l.budget))
			return nil
		}
	}
	return nil
}

// idleRounds are enough for memory, which nothing else on the host disturbs.
const idleRounds = 3

// more repeats the groups with figures that move too much, the worst first, until none
// does or the budget is used up.
func (l *lab) more(ctx context.Context) error {
	if l.run.Rounds < 3 {
		return nil // nothing is steady yet, nor known not to be
	}
	for {
		var next *group
		worst := 0
		for _, g := range l.groups {
			if n := l.unsteady(g); n > worst && g.rounds < enough && time.Since(l.start)+g.took < l.budget {
				next, worst = g, n
			}
		}
		if next == nil {
			return nil
		}
		if err := l.round(ctx, next); err != nil {
			return err
		}
	}
}

// unsteady counts the subjects of a group whose CPU time per request is not steady, or
// whose p99 is not where that is what the group is for. Each
// round that there has been already makes the group a little less pressing.
func (l *lab) unsteady(g *group) int {
	if g.Kind == scenario.Idle || g.Kind == scenario.Allocations {
		return 0
	}
	n := 0
	for _, s := range g.subjects {
		key := record.Key{Scenario: g.Name, Conns: g.conns, Peer: cmp.Or(s.Name, s.Peer.Name)}
		if record.SpreadOf(l.run.CPU(key)).Unsteady() || g.Kind == scenario.Open && l.run.SpreadOf(key, p99).Unsteady() {
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return max(1, 100*n/len(g.subjects)-10*(g.rounds-l.run.Rounds))
}

// round measures each subject of a group once, in an order that is shuffled each time.
func (l *lab) round(ctx context.Context, g *group) error {
	start := time.Now()
	line := fmt.Sprintf("round %d, %s", g.rounds+1, g.Name)
	if g.conns > 0 {
		line += fmt.Sprintf(" %d", g.conns)
	}
	if g.Share > 0 {
		if err := l.limit(ctx, g.conns, g.Share); err != nil {
			return err
		}
	}
	for _, i := range rand.New(rand.NewPCG(l.seed(), uint64(len(l.run.Samples)))).Perm(len(g.subjects)) { //nolint:gosec // to be repeated
		s := &g.subjects[i]
		samples, err := l.Measure(ctx, &g.Scenario, g.conns, s)
		if err != nil {
			return err
		}
		for j := range samples {
			samples[j].Round = g.rounds
			l.run.Samples = append(l.run.Samples, samples[j])
		}
		l.log.update("%s: %s", line, brief(&samples[0]))
	}
	g.rounds++
	g.took = time.Since(start)
	l.log.say("%s  [%v of at most %v]", l.line(line, g), time.Since(l.start).Round(time.Second), l.budget)
	return nil
}

func p99(s *record.Sample) float64 {
	if s.Latency == nil {
		return 0
	}
	return s.Latency.P99
}

// brief is what the progress line tells of a sample.
func brief(s *record.Sample) string {
	switch {
	case s.Open > 0:
		return fmt.Sprintf("%s %.0f B", s.Peer, s.PerConnection())
	case s.Allocations != nil:
		return fmt.Sprintf("%s %.2f allocations", s.Peer, *s.Allocations)
	default:
		return fmt.Sprintf("%s %.2f µs", s.Peer, s.Micros())
	}
}

// line sums a round of a group up, in the order of its subjects.
func (l *lab) line(line string, g *group) string {
	of := slices.Clone(l.run.Samples[len(l.run.Samples)-len(g.subjects):])
	if g.Kind == scenario.Allocations {
		of = l.run.Samples[len(l.run.Samples)-1:]
	}
	slices.SortFunc(of, func(a, b record.Sample) int { return cmp.Compare(a.Micros(), b.Micros()) })
	line += ":"
	for i := range of {
		line += " " + brief(&of[i])
	}
	return line
}
