package page

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pinion/bench/record"
)

// verdict on a bar; of several rows of a bar the least counts.
type verdict int

const (
	notMeasured verdict = iota
	missed
	undecided // by this run, on which side of the bar the figure is
	met
	goalMet
)

func (v verdict) String() string {
	return [...]string{"not measured", "**missed**", "undecided", "met", "goal\u00a0met"}[v]
}

// judged is a bar with what was measured.
type judged struct {
	bar
	found  int    // connections
	other  string // which peer the ratio was taken to
	value  record.Spread
	at     string // where it is worst, or for how many routes it is the same
	reason string // why it was not measured

	verdict verdict
	side    verdict // what the median alone says: missed, met or goalMet
	flawed  bool    // errors while it was measured
	behind  bool    // the generator was behind
	faulty  bool    // a check of the generator failed, and the figure depends on it
}

// judge returns the rows of a bar.
func (r *report) judge(b bar) []judged {
	conns := []int{b.conns}
	if b.conns == 0 {
		peers := []string{b.of}
		if b.to != "" {
			peers = append(peers, b.to)
		}
		if conns = r.conns(b.scenario, peers...); len(conns) == 0 {
			conns = []int{0}
		}
	}
	var rows []judged
	for _, n := range conns {
		rows = append(rows, r.judgeAt(b, n))
	}
	return rows
}

func (r *report) judgeAt(b bar, conns int) judged {
	j := judged{bar: b, found: conns, other: b.to, value: record.SpreadOf(nil)}
	if b.to == bestOther {
		j.other = r.best(b.scenario, conns, b.figure)
	}
	if j.reason = r.missing(j); j.reason != "" {
		return j
	}
	of := record.Key{Scenario: b.scenario, Conns: conns, Peer: b.of}
	to := record.Key{Scenario: b.scenario, Conns: conns, Peer: j.other}
	switch {
	case b.figure.worst:
		j.value, j.at = r.worst(of, b.figure)
	case j.other == "":
		j.value = r.of(of, b.figure.get)
	default:
		j.value = r.ratio(of, to, b.figure.get)
	}
	if j.value.N == 0 {
		j.reason = fmt.Sprintf("no round has a figure of %s", code(b.of))
		if j.other != "" {
			j.reason += " and of " + code(j.other)
		}
		return j
	}
	for _, key := range []record.Key{of, to} {
		j.flawed = j.flawed || r.errors(key) != (record.Errors{})
		j.behind = j.behind || b.figure.latency && r.limited(key)
	}
	j.faulty = b.figure.latency && slices.ContainsFunc(r.run.Generator, func(g record.Generator) bool { return !g.OK })
	j.decide()
	return j
}

// decide claims no more than the rounds bear out: of a goal in doubt the bar is left, and
// of a bar in doubt nothing.
func (j *judged) decide() {
	switch m := j.value.Median; {
	case m <= j.goal:
		j.side = goalMet
	case m <= j.limit:
		j.side = met
	default:
		j.side = missed
	}
	switch {
	case j.behind || j.faulty || j.crosses(j.limit):
		j.verdict = undecided
	case j.side == goalMet && j.crosses(j.goal):
		j.verdict = met
	default:
		j.verdict = j.side
	}
}

// crosses reports whether the middle half of the rounds lies on both sides of a line, so
// that another run could well come out on the other one.
func (j *judged) crosses(line float64) bool {
	return j.value.N > 1 && j.value.Low <= line && line < j.value.High
}

// missing says what a bar lacks to be judged, if anything.
func (r *report) missing(j judged) string {
	if len(r.conns(j.scenario)) == 0 {
		return "this run has no scenario " + code(j.scenario)
	}
	if j.to == bestOther && j.other == "" {
		return "no other Go server was measured"
	}
	for _, peer := range []string{j.of, j.other} {
		if peer == "" {
			continue
		}
		at := r.conns(j.scenario, peer)
		if len(at) == 0 {
			return code(peer) + " has no sample of " + code(j.scenario)
		}
		if j.found != 0 && !slices.Contains(at, j.found) {
			return fmt.Sprintf("%s has no sample with %s", code(peer), plural(j.found, "connection"))
		}
	}
	return ""
}

// best returns the Go server with the least, apart from pinion's own, and from fasthttp and
// gnet, which have bars of their own.
func (r *report) best(scenario string, conns int, f figure) string {
	best, least := "", math.Inf(1)
	for _, p := range r.order {
		if isPinion(p) || p == fasthttp || p == fragments || p == "gnet" || !strings.EqualFold(r.peer(p).Language, "Go") {
			continue
		}
		if s := r.of(record.Key{Scenario: scenario, Conns: conns, Peer: p}, f.get); s.N > 0 && s.Median < least {
			best, least = p, s.Median
		}
	}
	return best
}

// worst returns the greatest figure of any sample, and its route.
func (r *report) worst(key record.Key, f figure) (record.Spread, string) {
	worst, at := math.Inf(-1), ""
	routes := map[string]bool{}
	for _, s := range r.run.Of(key) {
		v := f.get(&s)
		if !finite(v) {
			continue
		}
		routes[s.Route] = true
		if v > worst {
			worst, at = v, code(s.Route)
		}
	}
	switch {
	case len(routes) == 0:
		return record.SpreadOf(nil), ""
	case worst < fewAllocations:
		at = "on " + plural(len(routes), "route")
	}
	return record.SpreadOf([]float64{worst}), at
}

// again judges a row by another run. The peer that it is compared with stays the same.
func (j judged) again(r *report) judged {
	b := j.bar
	b.to = j.other
	return r.judgeAt(b, j.found)
}
