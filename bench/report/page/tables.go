package page

import (
	"fmt"
	"strings"

	"pinion/bench/record"
)

// The tables of scenarios have no more columns than fit beside each other on a page.

// closedTable has no latency. Where the client is what is busy it sees an answer late, and
// starts its clock for the next request later still, so that a server which is faster than
// the client looks faster than it is.
func (r *report) closedTable(b *strings.Builder, name string, conns int) {
	base := fasthttp
	if name == "loops" {
		base = oneLoop
	}
	t := newTable("peer", ">CPU, µs/request", ">×\u00a0"+base, ">requests/s", ">CPU, server / load", ">RSS")
	for _, peer := range r.measured(name, conns) {
		key := record.Key{Scenario: name, Conns: conns, Peer: peer}
		ratio := none
		if s := r.ratio(key, record.Key{Scenario: name, Conns: conns, Peer: base}, (*record.Sample).Micros); s.N > 0 {
			ratio = fmt.Sprintf("%.2f", s.Median)
		}
		t.add(r.label(peer, key), spread(r.of(key, (*record.Sample).Micros), digits, r.cpuDagger(key)), ratio,
			digits(r.of(key, (*record.Sample).PerSecond).Median), r.uses(key), r.rss(key))
	}
	t.write(b)
	r.failures(b, name, conns)
}

func (r *report) openTable(b *strings.Builder, name string, conns int) {
	var due []float64
	beside := false
	for _, peer := range r.measured(name, conns) {
		key := record.Key{Scenario: name, Conns: conns, Peer: peer}
		beside = beside || r.beside(key).N > 0
		if s := r.of(key, func(s *record.Sample) float64 { return s.Rate }); s.N > 0 {
			due = append(due, s.Median)
		}
	}
	if s := record.SpreadOf(due); s.N > 0 {
		rate := digits(s.Min)
		if digits(s.Max) != rate {
			rate += " to " + digits(s.Max)
		}
		fmt.Fprintf(b, "Due were %s requests a second.\n\n", rate)
	}
	head := []string{"peer", ">answered/s", ">CPU, µs/request", ">p50", ">p99", ">p99.9", ">greatest", ">generator late, p99"}
	if beside { // the CPU time is of both kinds of request
		head[2] = ">pings beside/s"
	}
	t := newTable(head...)
	for _, peer := range r.measured(name, conns) {
		key := record.Key{Scenario: name, Conns: conns, Peer: peer}
		cost := digits(r.of(key, (*record.Sample).Micros).Median) + r.cpuDagger(key)
		if beside {
			cost = digits(r.beside(key).Median)
		}
		row := []string{r.label(peer, key), digits(r.of(key, (*record.Sample).PerSecond).Median), cost}
		for _, of := range []func(*record.Latency) float64{
			func(l *record.Latency) float64 { return l.P50 },
			func(l *record.Latency) float64 { return l.P99 },
			func(l *record.Latency) float64 { return l.P999 },
			func(l *record.Latency) float64 { return l.Max },
		} {
			row = append(row, duration(r.of(key, latency(of)).Median))
		}
		t.add(append(row, duration(r.of(key, func(s *record.Sample) float64 { return s.OwnLag }).Median))...)
	}
	t.write(b)
	r.failures(b, name, conns)
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
	t := newTable("peer", ">memory per connection", ">×\u00a0"+fasthttp, ">connections", ">RSS")
	for _, peer := range r.measured(name, conns) {
		key := record.Key{Scenario: name, Conns: conns, Peer: peer}
		each := r.of(key, (*record.Sample).PerConnection)
		ratio := none
		if s := r.ratio(key, record.Key{Scenario: name, Conns: conns, Peer: fasthttp}, (*record.Sample).PerConnection); s.N > 0 {
			ratio = digits(s.Median)
		}
		// With r.of, none before would count as not measured.
		before := r.run.SpreadOf(key, func(s *record.Sample) float64 { return float64(s.OpenBefore) })
		open := r.run.SpreadOf(key, func(s *record.Sample) float64 { return float64(s.Open) })
		t.add(r.label(peer, key), spread(each, bytesOf, r.dagger(each)), ratio,
			count(int64(before.Median))+" → "+count(int64(open.Median)),
			bytesOf(r.of(key, func(s *record.Sample) float64 { return float64(s.RSSBefore) }).Median)+" → "+r.rss(key))
	}
	t.write(b)
	r.failures(b, name, conns)
}

func (r *report) objectsTable(b *strings.Builder, name string, conns int) {
	t := newTable("peer", "route", ">objects per request", ">requests")
	for _, peer := range r.measured(name, conns) {
		for _, s := range r.run.Of(record.Key{Scenario: name, Conns: conns, Peer: peer}) {
			found := none
			if s.Allocations != nil {
				found = hundredths(*s.Allocations)
			}
			t.add(peerName(peer), code(s.Route), found, count(s.Requests))
		}
	}
	t.write(b)
	r.failures(b, name, conns)
}

func (r *report) uses(key record.Key) string {
	return percent(r.of(key, serverUse).Median) + " / " + percent(r.of(key, generatorUse).Median)
}

func (r *report) rss(key record.Key) string {
	return bytesOf(r.of(key, func(s *record.Sample) float64 { return float64(s.RSS) }).Median)
}

// failures lists the errors of a load, by peer.
func (r *report) failures(b *strings.Builder, name string, conns int) {
	var all []string
	for _, peer := range r.measured(name, conns) {
		if text := errorText(r.errors(record.Key{Scenario: name, Conns: conns, Peer: peer})); text != "" {
			all = append(all, peerName(peer)+" "+text)
		}
	}
	if all != nil {
		b.WriteString("Errors in all rounds together: " + strings.Join(all, "; ") + ".\n\n")
	}
}

// errorText says what went wrong, in bold, and nothing of nothing.
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
		return ""
	}
	return "**" + count(sum) + "** (" + strings.Join(kinds, ", ") + ")"
}
