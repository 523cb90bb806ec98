package page

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pinion/bench/record"
	"pinion/bench/report/chart"
)

// plot keeps a drawing for its file, and writes the image into the page.
func (r *report) plot(b *strings.Builder, file, alt string, svg []byte, caption string) {
	r.plots[file] = svg
	fmt.Fprintf(b, "![%s](%s)\n\n%s\n\n", alt, file, caption)
}

// headlinePlot draws CPU time per ping, by which the peers are ordered. It draws nothing
// where there is nothing.
func (r *report) headlinePlot(b *strings.Builder) bool {
	p := chart.Bars{
		Title:    "CPU time per request: GET /api/ping, 64 connections",
		Subtitle: "Shorter is better. Bar: median of the rounds; whisker: least and greatest.",
		Axis:     "CPU time of the server process, user and system, µs per request",
		Format:   tick(digits),
	}
	ratio := r.against() != ""
	if ratio {
		p.Axis = "CPU time of the server process, user and system, divided by that of " + r.against() + " in the same round"
		p.Notes = "µs per request"
	}
	for _, peer := range r.measured("ping", 64) {
		s := r.lead(peer)
		if s.N == 0 {
			continue
		}
		micros := digits(r.of(headline(peer), (*record.Sample).Micros).Median)
		bar := chart.Bar{Name: peer, Value: s.Median, Min: s.Min, Max: s.Max, Text: micros + " µs", Style: fill(peer)}
		if ratio {
			bar.Text, bar.Note = fmt.Sprintf("%.2f", s.Median), micros
		}
		p.Bars = append(p.Bars, bar)
	}
	if len(p.Bars) == 0 {
		return false
	}
	r.plot(b, "cpu-ping.svg", "CPU time per ping request at 64 connections, by server", p.SVG(),
		"Blue is pinion: `engine` is its transport with the handlers of the comparison, `pinion` the whole product with middleware and metrics. "+
			"Hatched is the floor, a C program on epoll that sends the same bytes and does not parse the request: nobody could use it, but it shows what the kernel alone costs.")
	return true
}

// cpuPlot draws the CPU time of all scenarios in which it is what a request costs.
func (r *report) cpuPlot(b *strings.Builder) {
	p := chart.Panels{
		Title:    "CPU time per request, µs",
		Subtitle: "Shorter is better. Each panel has a scale of its own; peers stand in the same order in all of them.",
		Columns:  3,
	}
	for _, sc := range r.scenarios() {
		if sc.kind != closedLoop || sc.Name == "loops" {
			continue
		}
		for _, n := range sc.conns {
			one := chart.Bars{Title: fmt.Sprintf("%s, %s", sc.Name, plural(n, "connection")), Axis: "µs per request"}
			for _, peer := range r.measured(sc.Name, n) {
				if s := r.of(record.Key{Scenario: sc.Name, Conns: n, Peer: peer}, (*record.Sample).Micros); s.N > 0 {
					one.Bars = append(one.Bars, chart.Bar{
						Name: peer, Value: s.Median, Min: s.Min, Max: s.Max, Text: digits(s.Median), Style: fill(peer),
					})
				}
			}
			if len(one.Bars) > 0 {
				p.Panels = append(p.Panels, one)
			}
		}
	}
	if len(p.Panels) == 0 {
		b.WriteString("Not measured.\n\n")
		return
	}
	r.plot(b, "cpu.svg", "CPU time per request in every scenario, by server", p.SVG(),
		"CPU time of the server per request, median of the rounds; whiskers are the least and the greatest. "+
			"nginx, HAProxy and the floor answer pings only. The figures are in the tables below.")
}

// throughputPlot draws requests a second of a scenario over its numbers of connections.
func (r *report) throughputPlot(b *strings.Builder, sc scenario) {
	p := chart.Lines{
		Title:    "Throughput over connections: " + sc.Name,
		Subtitle: "Higher is better. A ring: the generator was the limit, so the server may be faster than shown.",
		XAxis:    "connections (at equal steps)",
		YAxis:    "requests per second",
		Dots:     true,
		Columns:  4,
		Format:   tick(digits),
	}
	// At equal steps: to scale, 64 and more would crowd at the end.
	step := func(i int) float64 { return math.Exp2(float64(i)) }
	for i, n := range sc.conns {
		p.Ticks = append(p.Ticks, chart.Tick{At: step(i), Name: count(int64(n))})
	}
	for _, peer := range r.order {
		line := chart.Line{Name: peer, Style: r.stroke(peer)}
		for i, n := range sc.conns {
			key := record.Key{Scenario: sc.Name, Conns: n, Peer: peer}
			if s := r.of(key, (*record.Sample).PerSecond); s.N > 0 {
				line.Points = append(line.Points, chart.Point{X: step(i), Y: s.Median, Hollow: r.limited(key)})
			}
		}
		p.Lines = append(p.Lines, line)
	}
	p.Lines = slices.DeleteFunc(p.Lines, func(l chart.Line) bool { return len(l.Points) == 0 })
	if len(p.Lines) == 0 {
		return
	}
	r.plot(b, "throughput-"+fileName(sc.Name)+".svg", "Requests per second over the number of connections, by server", p.SVG(),
		"Requests per second, median of the rounds, in a closed loop. Where rings crowd together the plot shows the generator and not the servers: read the CPU time."+frames(p))
}

// latencyPlot draws the percentiles of an open loop.
func (r *report) latencyPlot(b *strings.Builder, sc scenario, conns int) {
	p := chart.Lines{
		Title:    fmt.Sprintf("Latency by percentile: %s, %s", sc.Name, plural(conns, "connection")),
		Subtitle: "Lower is better. From when a request was due, not from when it was sent.",
		XAxis:    "part of the requests that took at most so long",
		YAxis:    "latency (log scale)",
		Ticks:    percentileTicks(),
		LogY:     true,
		Format:   tick(duration),
		Columns:  3,
	}
	for _, peer := range r.measured(sc.Name, conns) {
		if points := curve(r.run.Of(record.Key{Scenario: sc.Name, Conns: conns, Peer: peer})); len(points) > 0 {
			p.Lines = append(p.Lines, chart.Line{Name: peer, Style: r.stroke(peer), Points: points})
		}
	}
	if len(p.Lines) == 0 {
		return
	}
	file := "latency-" + fileName(sc.Name)
	if len(sc.conns) > 1 {
		file += fmt.Sprintf("-%d", conns)
	}
	r.plot(b, file+".svg", "Latency percentiles in the scenario "+sc.Name+", by server", p.SVG(),
		fmt.Sprintf("Median of the rounds at each percentile, as far as at least %d requests of a round were slower.", fewest)+frames(p))
}

// frames explains a plot in which each peer has a frame.
func frames(p chart.Lines) string {
	if !p.Frames() {
		return ""
	}
	return " Each frame has one server in black, pinion in blue, and all others faint behind them; the scales are the same."
}

// idlePlot draws memory per idle connection.
func (r *report) idlePlot(b *strings.Builder, sc scenario, conns int) {
	p := chart.Bars{
		Title:    "Memory per idle connection",
		Subtitle: "Shorter is better. The scale is logarithmic: each step to the right is a multiple.",
		Axis:     "growth of resident memory per connection (log scale)",
		Log:      true,
		Format:   tick(bytesOf),
	}
	for _, peer := range r.measured(sc.Name, conns) {
		s := r.of(record.Key{Scenario: sc.Name, Conns: conns, Peer: peer}, (*record.Sample).PerConnection)
		if s.N > 0 {
			p.Bars = append(p.Bars, chart.Bar{Name: peer, Value: s.Median, Min: s.Min, Max: s.Max, Text: bytesOf(s.Median), Style: fill(peer)})
		}
	}
	if len(p.Bars) == 0 {
		return
	}
	file := fileName(sc.Name)
	if len(sc.conns) > 1 {
		file += fmt.Sprintf("-%d", conns)
	}
	r.plot(b, "memory-"+file+".svg", "Resident memory per idle connection, by server", p.SVG(),
		"What resident memory of the server grew by, divided by the number of connections opened meanwhile, each of which has served a request; median of the rounds. What the kernel keeps for a socket is not in it. "+r.slope(sc.Name, conns))
}

// slope says from where on the growth of memory was looked at.
func (r *report) slope(scenario string, conns int) string {
	s := record.SpreadOf(nil)
	for _, peer := range r.measured(scenario, conns) {
		before := r.of(record.Key{Scenario: scenario, Conns: conns, Peer: peer}, func(s *record.Sample) float64 { return float64(s.OpenBefore) })
		if before.N > 0 && !(before.Median >= s.Median) {
			s = before
		}
	}
	if s.N == 0 {
		return "It was looked at from the first connection on, and these go into room that a process has left: one with a large heap, such as `pinion`, looks better than it is."
	}
	return "It was looked at from " + plural(int(s.Median), "connection") + " on, since the first go into room that a process has left. " +
		"A heap as large as that of `pinion` has more to spare than all of them take: it holds for each what `engine` holds, whatever the figure says."
}

// fileName keeps of a name what is safe in a file's name and in a link.
func fileName(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			return c
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		}
		return '-'
	}, name)
}
