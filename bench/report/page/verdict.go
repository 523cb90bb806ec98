package page

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"pinion/bench/record"
)

type verdict int

const (
	notMeasured verdict = iota
	missed
	met
	goalMet
)

func (v verdict) String() string {
	return [...]string{"not measured", "**missed**", "met", "goal\u00a0met"}[v]
}

// judged is a bar with what was measured.
type judged struct {
	bar
	found  int    // connections
	other  string // which peer the ratio was taken to
	value  record.Spread
	at     string // where it is worst, or how many routes it is the same for
	reason string // why it was not measured

	verdict verdict
	flawed  bool // errors while it was measured
	behind  bool // the generator was behind
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
	switch m := j.value.Median; {
	case m <= b.goal:
		j.verdict = goalMet
	case m <= b.limit:
		j.verdict = met
	default:
		j.verdict = missed
	}
	for _, key := range []record.Key{of, to} {
		j.flawed = j.flawed || r.errors(key) != (record.Errors{})
		j.behind = j.behind || b.figure.latency && r.limited(key)
	}
	return j
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
		if isPinion(p) || p == fasthttp || p == "gnet" || !strings.EqualFold(r.peer(p).Language, "Go") {
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
	worst, at, n := -1.0, "", 0
	for _, s := range r.run.Of(key) {
		v := f.get(&s)
		if v >= 0 && finite(v) {
			n++
		}
		if v > worst && finite(v) {
			worst, at = v, code(s.Route)
		}
	}
	switch {
	case n == 0:
		return record.SpreadOf(nil), ""
	case worst == 0:
		at = "in " + plural(n, "sample")
	}
	return record.SpreadOf([]float64{worst}), at
}

// verdicts is the table of all bars, and a sentence that counts them.
func (r *report) verdicts(b *strings.Builder) {
	t := newTable(">#", "what", ">connections", "of", ">bar", ">goal", ">measured", "verdict")
	rows := map[int][]verdict{}
	for _, one := range bars() {
		for _, j := range r.judge(one) {
			number, what := strconv.Itoa(j.number), j.what
			if rows[j.number] != nil {
				number, what = "", ""
			}
			rows[j.number] = append(rows[j.number], j.verdict)
			t.add(number, what, j.conns(), j.about(), j.bound(j.limit), j.bound(j.goal), j.measured(r), j.text())
		}
	}
	tally(b, rows)
	t.write(b)
	b.WriteString("Where one peer is divided by another, the figure is a ratio: the median of the ratios of each round, and in brackets " +
		"the least and the greatest. Verdicts are by the exact median, not by the one rounded for print." +
		" `engine` answers with the same handlers as `fasthttp`; `pinion` is the product, with all its middleware and metrics." +
		" Best other is the Go server that spends the least apart from fasthttp and gnet." +
		" A verdict is in doubt, and counts all the same, where the middle half of the rounds lies on both sides of the bar, or the generator was behind: another run may say otherwise.")
	fmt.Fprintf(b, " Fewer than one object in %d requests count as none: what a process does beside its requests is counted too.\n\n", int(1/fewAllocations))
}

// tally counts bars, by the verdicts on their rows: a bar is worth its worst row.
func tally(b *strings.Builder, rows map[int][]verdict) {
	n := map[verdict]int{}
	partly := 0
	for _, all := range rows {
		judged := slices.DeleteFunc(slices.Clone(all), func(v verdict) bool { return v == notMeasured })
		if len(judged) == 0 {
			n[notMeasured]++
			continue
		}
		n[slices.Min(judged)]++
		if len(judged) < len(all) {
			partly++
		}
	}
	fmt.Fprintf(b, "Of the %d bars that pinion set itself, **%d met** (%d of them with the goal), **%d missed**, %d not measured. A bar counts as missed when any of its rows is missed",
		len(rows), n[met]+n[goalMet], n[goalMet], n[missed], n[notMeasured])
	if partly > 0 {
		fmt.Fprintf(b, "; for %d of those judged some rows were not measured", partly)
	}
	b.WriteString(".\n\n")
}

func (j judged) conns() string {
	if j.found == 0 || j.figure.worst {
		return none
	}
	return count(int64(j.found))
}

// about says of which peers the figure is.
func (j judged) about() string {
	const by = "\u00a0÷\u00a0" // some names have a stroke in them
	switch {
	case j.to == "":
		return j.of
	case j.to != bestOther || j.other == "":
		return j.of + by + j.to
	}
	return j.of + by + j.other + ", " + bestOther
}

func (j judged) bound(limit float64) string {
	switch {
	case j.figure.worst:
		return "0"
	case j.to != "":
		return "≤ " + strconv.FormatFloat(limit, 'f', 2, 64)
	}
	return "≤ " + tick(digits)(limit) + " " + j.figure.unit
}

func (j judged) measured(r *report) string {
	if j.value.N == 0 {
		return none
	}
	if j.figure.worst {
		return digits(j.value.Median) + " (" + j.at + ")"
	}
	format := three
	if j.to == "" {
		format = digits
	}
	text := spread(j.value, format)
	if j.figure.unit != "" {
		text = spread(j.value, format) + " " + j.figure.unit
	}
	text += r.dagger(j.value)
	if j.behind {
		text += " ‡"
	}
	return text
}

func (j judged) text() string {
	text := j.verdict.String()
	switch {
	case j.verdict == notMeasured:
		text += ": " + j.reason
	case j.flawed:
		text += ", **with errors**"
	case j.doubtful():
		text += ", in doubt"
	}
	return text
}

// doubtful reports whether another run could well come to another verdict: the middle half
// of the rounds lies on both sides of the bar, or the generator was behind.
func (j judged) doubtful() bool {
	return j.behind || j.value.N > 1 && j.value.Low <= j.limit && j.limit < j.value.High
}
