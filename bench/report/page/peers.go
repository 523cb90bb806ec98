package page

import (
	"cmp"
	"slices"
	"strings"

	"pinion/bench/record"
	"pinion/bench/report/chart"
)

// Peers that have a part of their own on the page.
const (
	product  = "pinion"   // the server as it is installed
	engine   = "engine"   // the same transport with the handlers of the comparison
	floor    = "floor"    // answers without parsing
	fasthttp = "fasthttp" // what most ratios are taken to

	fragments = "fasthttp+fragments" // with the JSON of each user made beforehand
)

// headline is the measurement by which peers are ordered.
func headline(peer string) record.Key { return record.Key{Scenario: "ping", Conns: 64, Peer: peer} }

// against returns the peer that CPU times of the headline are divided by, or none.
func (r *report) against() string {
	if r.of(headline(fasthttp), (*record.Sample).Micros).N > 0 {
		return fasthttp
	}
	return ""
}

// lead is the figure by which peers are ordered: CPU time in the headline, divided by that
// of fasthttp in the same round where there is one. Absolute figures move with the host
// from round to round, and by them the order would contradict the ratios.
func (r *report) lead(peer string) record.Spread {
	if to := r.against(); to != "" {
		return r.ratio(headline(peer), headline(to), (*record.Sample).Micros)
	}
	return r.of(headline(peer), (*record.Sample).Micros)
}

// peers returns all peers, the one that leads first. Those that are not in the headline
// come last, as they stand in the data.
func (r *report) peers() []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, p := range r.run.Peers {
		add(p.Name)
	}
	for i := range r.run.Samples {
		add(r.run.Samples[i].Peer)
	}
	leads := map[string]record.Spread{}
	for _, name := range names {
		leads[name] = r.lead(name)
	}
	if leads[fragments].N == 0 { // a variant of fasthttp for one scenario stands beside it
		leads[fragments] = leads[fasthttp]
	}
	slices.SortStableFunc(names, func(a, b string) int {
		x, y := leads[a], leads[b]
		if x.N == 0 || y.N == 0 {
			return cmp.Compare(min(1, y.N), min(1, x.N))
		}
		return cmp.Compare(x.Median, y.Median)
	})
	return names
}

func (r *report) peer(name string) record.Peer {
	i := slices.IndexFunc(r.run.Peers, func(p record.Peer) bool { return p.Name == name })
	if i < 0 {
		return record.Peer{Name: name}
	}
	return r.run.Peers[i]
}

func isPinion(peer string) bool {
	return peer == product || peer == engine || strings.HasPrefix(peer, engine+" ")
}

const blue = "#0072b2" // told from grey with any kind of colour vision

// fill is how the bar of a peer looks.
func fill(peer string) chart.Style {
	switch {
	case isPinion(peer):
		return chart.Style{Color: blue, Strong: true}
	case peer == floor:
		return chart.Style{Hatched: true}
	case peer == fasthttp:
		return chart.Style{Color: "#7f8994"}
	}
	return chart.Style{Color: "#bcc4cd"}
}

// stroke is how the line of a peer looks: the same colours, darker where they would be too
// faint for a line, and dashes to follow one by.
func (r *report) stroke(peer string) chart.Style {
	switch peer {
	case engine:
		return chart.Style{Color: blue, Strong: true}
	case product:
		return chart.Style{Color: blue, Strong: true, Dash: "7 4"}
	case fasthttp:
		return chart.Style{Color: "#424a53"}
	case floor:
		return chart.Style{Color: "#8c959f", Dash: "1.5 3"}
	}
	others := slices.DeleteFunc(slices.Clone(r.order), func(p string) bool {
		return isPinion(p) || p == floor || p == fasthttp
	})
	looks := []chart.Style{
		{Color: "#7f8994"},
		{Color: "#7f8994", Dash: "6 3"},
		{Color: "#a3acb6"},
		{Color: "#7f8994", Dash: "2 2"},
		{Color: "#a3acb6", Dash: "9 3 2 3"},
	}
	return looks[max(0, slices.Index(others, peer))%len(looks)]
}
