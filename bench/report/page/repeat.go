package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pinion/bench/record"
)

// repeated compares the run with a second one of the same command: does the order of the
// peers hold, and how far apart are the figures?
func (r *report) repeated(b *strings.Builder, again *report) {
	fmt.Fprintf(b, "The same command was run once more, %s ([its data](%s)). Compared are the medians of CPU time per request. "+
		"Where two peers changed places, the figures of both runs stand beside their names. "+
		"\"Host\" is by how much all peers of the second run were slower or faster alike, the median of their ratios, and \"apart\" the most that one of them was from it.\n\n",
		again.date(), again.raw)
	t := newTable("scenario", ">connections", ">peers", ">host", ">apart", "order")
	for _, sc := range r.scenarios() {
		if sc.kind == idle || sc.kind == objects {
			continue
		}
		for _, n := range sc.conns {
			if row := r.repeatedRow(again, sc.Name, n); row != nil {
				t.add(row...)
			}
		}
	}
	t.write(b)
}

// twice is the figure of a peer in both runs.
type twice struct {
	peer          string
	first, second float64
}

func (r *report) repeatedRow(again *report, scenario string, conns int) []string {
	var all []twice
	for _, peer := range r.measured(scenario, conns) {
		key := record.Key{Scenario: scenario, Conns: conns, Peer: peer}
		a, z := r.of(key, (*record.Sample).Micros).Median, again.of(key, (*record.Sample).Micros).Median
		if a > 0 && z > 0 {
			all = append(all, twice{peer, a, z})
		}
	}
	if len(all) < 2 {
		return nil
	}
	ratios := make([]float64, len(all))
	for i, t := range all {
		ratios[i] = t.second / t.first
	}
	host, apart := record.SpreadOf(ratios).Median, 0.0
	for _, x := range ratios {
		apart = math.Max(apart, math.Abs(x/host-1))
	}
	return []string{
		code(scenario), fmt.Sprint(conns), fmt.Sprint(len(all)),
		fmt.Sprintf("%+.0f %%", 100*(host-1)), fmt.Sprintf("%.0f %%", 100*apart), swapped(all),
	}
}

// swapped names the peers that changed places.
func swapped(all []twice) string {
	slices.SortStableFunc(all, func(a, b twice) int { return cmp.Compare(a.first, b.first) })
	var pairs []string
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.second > b.second {
				pairs = append(pairs, fmt.Sprintf("%s (%s, %s) and %s (%s, %s)",
					peerName(a.peer), digits(a.first), digits(a.second), peerName(b.peer), digits(b.first), digits(b.second)))
			}
		}
	}
	if pairs == nil {
		return "the same"
	}
	return strings.Join(pairs, "; ")
}
