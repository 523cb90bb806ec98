package page

import (
	"fmt"
	"strings"
)

// near is how close the figures of two runs should be.
const near = 0.10

// repeated compares the run with a second one of the same command: does the order of the
// peers hold, and how far apart are the figures?
func (r *report) repeated(b *strings.Builder, again *report) {
	var loads []*agreement
	for _, sc := range r.scenarios() {
		if sc.kind == idle || sc.kind == objects {
			continue
		}
		for _, n := range sc.conns {
			if a := r.agree(again, sc.Name, n); a != nil {
				loads = append(loads, a)
			}
		}
	}
	r.agreed(b, loads)
	r.bothRuns(b, again)
	if len(loads) == 0 {
		return
	}
	fmt.Fprintf(b, "Compared is CPU time per request, under every load that three peers or more have in both runs. "+
		"Two peers are told apart where so many of their rounds agree on which costs less that chance alone would do it once in %d times at most (sign test, %d rounds at least): "+
		"a difference that is not told may be there all the same. "+
		"Distances are between the figures of a peer in the two runs, relative to what all peers of the load cost, which leaves out how fast the host was in each round (median polish of the logarithms).\n\n",
		int(1/chance), fewestRounds)
	t := newTable("scenario", ">connections", ">peers", ">pairs", ">told alike", ">by one only", ">contrary", ">greatest distance")
	for _, a := range loads {
		far, peer := a.greatest()
		t.add(code(a.scenario), count(int64(a.conns)), fmt.Sprint(len(a.peers)), fmt.Sprint(a.pairs), fmt.Sprint(a.alike),
			fmt.Sprint(a.first+a.second-2*a.alike-2*len(a.contrary)), fmt.Sprint(len(a.contrary)), percent(far)+broken+"("+peerName(peer)+")")
	}
	t.write(b)
	some := false
	for _, a := range loads {
		if a.contrary != nil {
			some = true
			fmt.Fprintf(b, "- %s, %s: contrary are %s.\n", code(a.scenario), plural(a.conns, "connection"), strings.Join(a.contrary, "; "))
		}
	}
	if some {
		b.WriteString("\n")
	}
}

// agreed is the verdict on all loads together.
func (r *report) agreed(b *strings.Builder, loads []*agreement) {
	var pairs, first, second, alike, contrary, figures, inside int
	far, at := -1.0, ""
	for _, a := range loads {
		pairs, first, second = pairs+a.pairs, first+a.first, second+a.second
		alike, contrary = alike+a.alike, contrary+len(a.contrary)
		for _, d := range a.apart {
			figures++
			if d <= near {
				inside++
			}
		}
		if d, peer := a.greatest(); d > far {
			far, at = d, fmt.Sprintf("%s in %s with %s", peerName(peer), code(a.scenario), plural(a.conns, "connection"))
		}
	}
	if figures == 0 {
		b.WriteString("**The two runs have no load in common that could be compared.**\n\n")
		return
	}
	order := "No pair of peers is told apart by both runs, so they say nothing of the order."
	switch both := alike + contrary; {
	case contrary > 0:
		order = fmt.Sprintf("Of %s of peers that both runs tell apart, %s out the other way round in the second: the order does not hold everywhere.", plural(both, "pair"), come(contrary))
	case both > 0:
		order = fmt.Sprintf("Of %s of peers that both runs tell apart, none comes out the other way round in the second: as far as both tell it, the order holds.", plural(both, "pair"))
	}
	fmt.Fprintf(b, "**%s %d of %s (%s) are within %.0f %% of each other; the greatest distance is %s.**\n\n",
		order, inside, plural(figures, "figure"), percent(float64(inside)/float64(figures)), 100*near, percent(far))
	fmt.Fprintf(b, "- Of %s of peers the first run tells %d apart, the second %d. Of those of the first, the second tells %d the same way, %d not at all, and %d the other way round; of those of the second, the first does not tell %d.\n",
		plural(pairs, "pair"), first, second, alike, first-alike-contrary, contrary, second-alike-contrary)
	fmt.Fprintf(b, "- A figure is what a peer costs relative to all peers of the same load. The greatest distance is that of %s.\n\n", at)
}

func come(n int) string {
	if n == 1 {
		return "1 comes"
	}
	return count(int64(n)) + " come"
}

// bothRuns describes the two runs beside each other.
func (r *report) bothRuns(b *strings.Builder, again *report) {
	t := newTable("", "started", "revision", ">rounds", "load average before", "data")
	for i, one := range []*report{r, again} {
		rounds := fmt.Sprint(one.run.Rounds)
		if one.mostRounds > one.run.Rounds {
			rounds += fmt.Sprintf(" to %d", one.mostRounds)
		}
		t.add([]string{"first run", "second run"}[i], one.date(), code(one.run.Revision), rounds, or(prose(one.run.Host.Load), none), "["+prose(one.raw)+"]("+one.raw+")")
	}
	t.write(b)
	if r.run.Revision != again.run.Revision {
		b.WriteString("The revisions differ: what changed between them is part of any distance.\n\n")
	}
	if n := min(r.run.Rounds, again.run.Rounds); n < fewestRounds {
		fmt.Fprintf(b, "One of the runs planned for %s only, and tells peers apart just where it went on to %d.\n\n", plural(n, "round"), fewestRounds)
	}
}
