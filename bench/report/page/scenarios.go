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

func (r *report) writeConns(b *strings.Builder, sc scenario, n int) {
	switch sc.kind {
	case openLoop:
		r.latencyPlot(b, sc, n)
	case idle:
		r.idlePlot(b, sc, n)
	}
	if sc.kind != objects {
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

func (r *report) closedTable(b *strings.Builder, name string, conns int) {
	base := fasthttp
	if name == "loops" {
		base = oneLoop
	}
	t := newTable("peer", ">CPU, µs/request", ">×\u00a0"+base, ">requests/s", ">CPU, server / load", ">p50", ">p99", ">RSS", ">errors")
	for _, peer := range r.measured(name, conns) {
		key := record.Key{Scenario: name, Conns: conns, Peer: peer}
		cpu := r.of(key, (*record.Sample).Micros)
		ratio := none
		if s := r.ratio(key, record.Key{Scenario: name, Conns: conns, Peer: base}, (*record.Sample).Micros); s.N > 0 {
			ratio = fmt.Sprintf("%.2f", s.Median)
		}
		t.add(r.label(peer, key), spread(cpu, digits)+r.cpuDagger(key), ratio,
			digits(r.of(key, (*record.Sample).PerSecond).Median), r.uses(key),
			duration(r.of(key, latency(func(l *record.Latency) float64 { return l.P50 })).Median),
			duration(r.of(key, p99).Median), r.rss(key), r.errorText(key))
	}
	t.write(b)
}

func (r *report) openTable(b *strings.Builder, name string, conns int) {
	beside := false
	for _, peer := range r.order {
		beside = beside || r.beside(record.Key{Scenario: name, Conns: conns, Peer: peer}).N > 0
	}
	head := []string{"peer", ">due/s", ">answered/s", ">errors", ">CPU, µs/request", ">p50", ">p99", ">p99.9", ">greatest", ">generator late, p99", ">CPU, server / load"}
	if beside { // the CPU time is of both kinds of request
		head[4] = ">pings beside/s"
	}
	t := newTable(head...)
	for _, peer := range r.measured(name, conns) {
		key := record.Key{Scenario: name, Conns: conns, Peer: peer}
		cpu := r.of(key, (*record.Sample).Micros)
		cost := digits(cpu.Median) + r.cpuDagger(key)
		if beside {
			cost = digits(r.beside(key).Median)
		}
		row := []string{
			r.label(peer, key), digits(r.of(key, func(s *record.Sample) float64 { return s.Rate }).Median),
			digits(r.of(key, (*record.Sample).PerSecond).Median), r.errorText(key), cost,
		}
		for _, of := range []func(*record.Latency) float64{
			func(l *record.Latency) float64 { return l.P50 },
			func(l *record.Latency) float64 { return l.P99 },
			func(l *record.Latency) float64 { return l.P999 },
			func(l *record.Latency) float64 { return l.Max },
		} {
			row = append(row, duration(r.of(key, latency(of)).Median))
		}
		late := r.of(key, func(s *record.Sample) float64 { return s.OwnLag })
		t.add(append(row, duration(late.Median), r.uses(key))...)
	}
	t.write(b)
}

// beside returns requests of other routes a second.
func (r *report) beside(key record.Key) record.Spread {
	return r.of(key, func(s *record.Sample) float64 {
		if s.Seconds == 0 {
			return 0
		}
		return float64(s.Beside) / s.Seconds
	})
}

func (r *report) idleTable(b *strings.Builder, name string, conns int) {
	t := newTable("peer", ">memory per connection", ">×\u00a0"+fasthttp, ">connections open", ">RSS before", ">RSS with them", ">errors")
	for _, peer := range r.measured(name, conns) {
		key := record.Key{Scenario: name, Conns: conns, Peer: peer}
		each := r.of(key, (*record.Sample).PerConnection)
		ratio := none
		if s := r.ratio(key, record.Key{Scenario: name, Conns: conns, Peer: fasthttp}, (*record.Sample).PerConnection); s.N > 0 {
			ratio = digits(s.Median)
		}
		open := none
		if s := r.of(key, func(s *record.Sample) float64 { return float64(s.Open) }); s.N > 0 {
			open = count(int64(s.Median))
		}
		t.add(r.label(peer, key), spread(each, bytesOf)+r.dagger(each), ratio, open,
			bytesOf(r.of(key, func(s *record.Sample) float64 { return float64(s.RSSBefore) }).Median), r.rss(key), r.errorText(key))
	}
	t.write(b)
}

func (r *report) objectsTable(b *strings.Builder, name string, conns int) {
	t := newTable("peer", "route", ">objects per request", ">requests", ">errors")
	for _, peer := range r.measured(name, conns) {
		for _, s := range r.run.Of(record.Key{Scenario: name, Conns: conns, Peer: peer}) {
			found := none
			if s.Allocations != nil {
				found = digits(*s.Allocations)
			}
			var e record.Errors
			if s.Errors != nil {
				e = *s.Errors
			}
			t.add(peerName(peer), code(s.Route), found, count(s.Requests), errorText(e))
		}
	}
	t.write(b)
}

// label is the name of a peer in a table, with the mark of a generator that was the limit.
func (r *report) label(peer string, key record.Key) string {
	if r.limited(key) {
		return peerName(peer) + " ‡"
	}
	return peerName(peer)
}

func peerName(peer string) string {
	if isPinion(peer) {
		return "**" + prose(peer) + "**"
	}
	return prose(peer)
}

func (r *report) uses(key record.Key) string {
	return percent(r.of(key, serverUse).Median) + " / " + percent(r.of(key, generatorUse).Median)
}

func (r *report) rss(key record.Key) string {
	return bytesOf(r.of(key, func(s *record.Sample) float64 { return float64(s.RSS) }).Median)
}

func (r *report) errorText(key record.Key) string { return errorText(r.errors(key)) }

// errorText says what went wrong, in bold.
func errorText(e record.Errors) string {
	var kinds []string
	sum := int64(0)
	for _, k := range []struct {
		n    int64
		name string
	}{{e.Status, "status"}, {e.Connect, "connect"}, {e.Read, "read"}, {e.Write, "write"}, {e.Timeout, "timeout"}} {
		if k.n > 0 {
			sum += k.n
			kinds = append(kinds, count(k.n)+" "+k.name)
		}
	}
	if sum == 0 {
		return "0"
	}
	return "**" + count(sum) + "** (" + strings.Join(kinds, ", ") + ")"
}

func or(s, instead string) string {
	if s == "" {
		return instead
	}
	return s
}
