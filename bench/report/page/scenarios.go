package page

import (
	"fmt"
	"slices"
	"strings"

	"pinion/bench/record"
)

// kind tells which figures a scenario has.
type kind int

const (
	closedLoop kind = iota
	openLoop        // requests are due at times of their own
	idle            // memory of connections
	objects         // allocations
)

// scenario is one that has samples.
type scenario struct {
	record.Scenario
	kind  kind
	conns []int // ascending
}

// scenarios returns those of the run that were measured, as they stand there; such as are
// not described come last.
func (r *report) scenarios() []scenario {
	var all []scenario
	described := slices.Clone(r.run.Scenarios)
	for i := range r.run.Samples {
		name := r.run.Samples[i].Scenario
		if !slices.ContainsFunc(described, func(s record.Scenario) bool { return s.Name == name }) {
			described = append(described, record.Scenario{Name: name})
		}
	}
	for _, s := range described {
		if conns := r.conns(s.Name); len(conns) > 0 {
			all = append(all, scenario{s, r.kind(s.Name), conns})
		}
	}
	return all
}

func (r *report) kind(name string) kind {
	k := closedLoop
	for i := range r.run.Samples {
		s := &r.run.Samples[i]
		if s.Scenario != name {
			continue
		}
		switch {
		case s.Rate > 0 || s.Beside > 0:
			k = openLoop
		case s.Open > 0:
			k = idle
		case s.Allocations != nil:
			k = objects
		}
	}
	return k
}

// usual is the number of connections that is shown first.
func (s scenario) usual() int {
	if slices.Contains(s.conns, 64) {
		return 64
	}
	return s.conns[0]
}

func (r *report) writeScenarios(b *strings.Builder) {
	all := r.scenarios()
	for _, sc := range all {
		title := or(prose(sc.Title), sc.Name)
		fmt.Fprintf(b, "### %s\n\n", title)
		if title != sc.Name {
			fmt.Fprintf(b, "Scenario %s. ", code(sc.Name))
		}
		if sc.About != "" {
			b.WriteString(prose(sc.About))
		}
		b.WriteString("\n\n")
		if sc.Name == "users" {
			r.likeForLike(b, sc)
		}
		if sc.kind == closedLoop && len(sc.conns) > 2 {
			r.throughputPlot(b, sc)
		}
		first := sc.usual()
		r.writeConns(b, sc, first)
		for _, n := range sc.conns {
			switch {
			case n == first:
			case len(sc.conns) == 2:
				r.writeConns(b, sc, n)
			default:
				fmt.Fprintf(b, "<details>\n<summary>%s</summary>\n\n", plural(n, "connection"))
				r.table(b, sc, n)
				b.WriteString("</details>\n\n")
			}
		}
	}
	for _, s := range r.run.Scenarios {
		if len(r.conns(s.Name)) == 0 {
			fmt.Fprintf(b, "### %s\n\nScenario %s: not measured in this run.\n\n", or(prose(s.Title), s.Name), code(s.Name))
		}
	}
}

// likeForLike says with which peer pinion can be compared where its answer is ready.
func (r *report) likeForLike(b *strings.Builder, sc scenario) {
	b.WriteString("`pinion` joins JSON that was made when the users were read, and other servers encode structs for each request: that is compared here, and not the transport alone.")
	if slices.ContainsFunc(sc.conns, func(n int) bool { return slices.Contains(r.measured(sc.Name, n), fragments) }) {
		b.WriteString(" Like for like is the comparison with " + code(fragments) + ", the same as `fasthttp` with the JSON of each user made beforehand.")
	}
	b.WriteString("\n\n")
}

func (r *report) writeConns(b *strings.Builder, sc scenario, n int) {
	switch sc.kind {
	case openLoop:
		r.latencyPlot(b, sc, n)
	case idle:
		r.idlePlot(b, sc, n)
	}
	if sc.kind != objects && n > 0 {
		fmt.Fprintf(b, "**%s**\n\n", plural(n, "connection"))
	}
	r.table(b, sc, n)
}

func (r *report) table(b *strings.Builder, sc scenario, conns int) {
	switch sc.kind {
	case closedLoop:
		r.closedTable(b, sc.Name, conns)
	case openLoop:
		r.openTable(b, sc.Name, conns)
	case idle:
		r.idleTable(b, sc.Name, conns)
	case objects:
		r.objectsTable(b, sc.Name, conns)
	}
}

// label is the name of a peer in a table, with the mark of a generator that was the limit.
func (r *report) label(peer string, key record.Key) string {
	if r.limited(key) {
		return peerName(peer) + "\u00a0‡"
	}
	return peerName(peer)
}

func peerName(peer string) string {
	if isPinion(peer) {
		return "**" + prose(peer) + "**"
	}
	return prose(peer)
}

func or(s, instead string) string {
	if s == "" {
		return instead
	}
	return s
}
