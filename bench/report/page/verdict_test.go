package page

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pinion/bench/record"
	"pinion/bench/report/chart"
)

// find returns the rows of a bar that compare two peers.
func find(t *testing.T, run *record.Run, number int, of, to string) []judged {
	t.Helper()
	r := newReport(run, "")
	var rows []judged
	for _, b := range bars() {
		if b.number == number && b.of == of && b.to == to {
			rows = append(rows, r.judge(b)...)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("no bar %d of %s to %s", number, of, to)
	}
	return rows
}

func TestBarsAreThoseOfTheDesign(t *testing.T) {
	want := map[int][2]float64{
		1: {1.12, 1.05}, 2: {0.87, 0.75}, 3: {0.95, 0.85}, 4: {0.70, 0.45}, 5: {0.80, 0.50}, 6: {0.50, 0.40}, 7: {0.40, 0.25},
		8: {1.10, 1.00}, 9: {5, 2}, 10: {0.60, 0.40}, 11: {512, 320}, 12: {fewAllocations, fewAllocations}, 13: {1.10, 1.00},
	}
	seen := map[int]bool{}
	for _, b := range bars() {
		if b.beside {
			continue
		}
		if want[b.number] != [2]float64{b.limit, b.goal} {
			t.Errorf("bar %d: %g and %g", b.number, b.limit, b.goal)
		}
		seen[b.number] = true
	}
	if len(seen) != len(want) {
		t.Errorf("%d bars, want %d", len(seen), len(want))
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		engine float64
		want   verdict
	}{
		{4.5, goalMet}, // exactly the goal
		{4.51, met},
		{7.0, met}, // exactly the bar
		{7.004, missed},
		{20, missed},
	} {
		run := &record.Run{}
		costing(run, "pipeline", 32, "engine", c.engine)
		costing(run, "pipeline", 32, "fasthttp", 10)
		j := find(t, run, 4, "engine", "fasthttp")
		if len(j) != 1 || j[0].verdict != c.want || j[0].found != 32 {
			t.Errorf("%g of 10: %+v", c.engine, j)
		}
	}
}

// The ratio is the median of those of each round, not the ratio of the medians.
func TestRatioOfRounds(t *testing.T) {
	run := &record.Run{}
	costing(run, "churn", 64, "engine", 8, 10, 30)
	costing(run, "churn", 64, "fasthttp", 10, 20, 20) // 0.8, 0.5, 1.5; of the medians 0.5
	j := find(t, run, 5, "engine", "fasthttp")[0]
	if v := j.value; v.Median != 0.8 || v.Min != 0.5 || v.Max != 1.5 || j.side != met {
		t.Errorf("%+v", j)
	}
	if got := j.measured(newReport(run, "")); got != "0.800 †"+broken+"(0.500 to 1.500)" {
		t.Error(got)
	}
}

func TestMissedStaysMissed(t *testing.T) {
	run := &record.Run{Rounds: 1}
	costing(run, "ping", 64, "engine", 9)
	costing(run, "ping", 256, "engine", 7)
	costing(run, "ping", 64, "fasthttp", 10)
	costing(run, "ping", 256, "fasthttp", 10)
	page := text(t, run)
	wants(t, page, "**0 met** (0 of them with the goal), **1 missed**, **0 undecided**, 12 not measured. A bar is worth its worst row: missed when any of them is missed, else undecided when any of them is; for 1 of those judged some rows were not measured.",
		"| 2 | **missed** | CPU, ping, 64 connections | engine ÷ fasthttp | 0.87 | 0.75 | 0.900 |",
		"|  | goal met | 256 connections | engine ÷ fasthttp | 0.87 | 0.75 | 0.700 |",
		"| not measured: `pinion` has no sample of `ping` | 64 connections | pinion ÷ fasthttp | 0.87 | 0.75 | – |")
}

func TestBestOfTheRest(t *testing.T) {
	run := &record.Run{Peers: []record.Peer{
		{Name: "engine", Language: "Go"},
		{Name: "gnet", Language: "Go"},
		{Name: "fasthttp", Language: "Go"},
		{Name: "chi", Language: "Go"},
		{Name: "hertz", Language: "Go"},
		{Name: "nginx", Language: "C"},
	}}
	for peer, micros := range map[string]float64{"engine": 6, "gnet": 7, "fasthttp": 8, "nginx": 8.5, "hertz": 10, "chi": 13} {
		costing(run, "ping", 64, peer, micros)
	}
	j := find(t, run, 3, "engine", bestOther)[0]
	if j.other != "hertz" || math.Abs(j.value.Median-0.6) > 1e-9 || j.verdict != goalMet {
		t.Errorf("%+v", j)
	}
	wants(t, text(t, run), "| engine ÷ hertz, best other |")

	run.Peers[4].Language, run.Peers[3].Language = "C", ""
	if j = find(t, run, 3, "engine", bestOther)[0]; j.reason != "no other Go server was measured" {
		t.Errorf("%+v", j)
	}
}

func TestTails(t *testing.T) {
	sample := func(scenario, peer string, p99 float64, behind bool) record.Sample {
		return record.Sample{Scenario: scenario, Conns: 16, Peer: peer, Rate: 100, Requests: 300, Seconds: 3, Behind: behind, Latency: &record.Latency{P99: p99}}
	}
	run := &record.Run{Samples: []record.Sample{
		sample("mix", "engine", 1900, false),
		sample("rate", "engine", 500, false),
		sample("rate", "fasthttp", 1000, true),
	}}
	j := find(t, run, 9, "engine", "")[0]
	if j.value.Median != 1.9 || j.verdict != goalMet || j.bound(j.limit) != "5 ms" || j.measured(newReport(run, "")) != "1.90\u00a0ms" {
		t.Errorf("%+v", j)
	}
	j = find(t, run, 10, "engine", "fasthttp")[0]
	if j.value.Median != 0.5 || j.verdict != undecided || j.text() != "undecided (met)" || !j.behind || j.measured(newReport(run, "")) != "0.500 ‡" {
		t.Errorf("%+v", j)
	}
	run.Samples[1].Latency.P99 = 100
	if j = find(t, run, 10, "engine", "fasthttp")[0]; j.text() != "undecided (goal\u00a0met)" {
		t.Errorf("with a generator that was behind: %q", j.text())
	}
	run.Generator = []record.Generator{{OK: true}}
	if j = find(t, run, 9, "engine", "")[0]; j.verdict != goalMet {
		t.Errorf("with a generator that is right: %+v", j)
	}
	run.Generator = append(run.Generator, record.Generator{Name: "p99 with a stop"})
	if j = find(t, run, 9, "engine", "")[0]; j.text() != "undecided (goal\u00a0met)" {
		t.Errorf("with a generator that is wrong: %q", j.text())
	}
	costing(run, "json", 64, "engine", 4)
	costing(run, "json", 64, "gin", 10)
	if j = find(t, run, 6, "engine", "gin")[0]; j.verdict != goalMet {
		t.Errorf("CPU time with a generator that is wrong: %+v", j)
	}
	run.Samples[0].Latency = nil
	if j = find(t, run, 9, "engine", "")[0]; j.verdict != notMeasured || j.reason != "no round has a figure of `engine`" {
		t.Errorf("%+v", j)
	}
}

func TestMemoryPerConnection(t *testing.T) {
	run := &record.Run{Samples: []record.Sample{
		{Scenario: "idle", Conns: 100, Peer: "engine", Open: 100, RSSBefore: 1000, RSS: 31000}, // 300 B
		{Scenario: "idle", Conns: 100, Peer: "pinion", Open: 100, RSSBefore: 1000, RSS: 61000}, // 600 B
	}}
	if j := find(t, run, 11, "engine", "")[0]; j.verdict != goalMet || j.measured(newReport(run, "")) != "300\u00a0B" {
		t.Errorf("%+v", j)
	}
	if j := find(t, run, 11, "pinion", "")[0]; j.verdict != missed {
		t.Errorf("%+v", j)
	}
	// Those that were open before have taken their memory already.
	run.Samples[0].OpenBefore = 60
	if j := find(t, run, 11, "engine", "")[0]; j.verdict != missed || j.measured(newReport(run, "")) != "750\u00a0B" {
		t.Errorf("%+v", j)
	}
	page := text(t, run)
	wants(t, page, "\n| **engine** | 750 B | – | 60 → 100 | 0.977 KiB → 30.3 KiB |\n", "looked at from 60 connections on")
	run.Samples[0].OpenBefore = 0
	page = text(t, run)
	wants(t, page, "| 0 → 100 |", "one with a large heap, such as `pinion`, looks better than it is")

	// Less memory than before is a measurement that failed, not a good one.
	run.Samples[0].RSS = 500
	if j := find(t, run, 11, "engine", "")[0]; j.verdict != notMeasured {
		t.Errorf("%+v", j)
	}
}

func TestAllocationsWorstCounts(t *testing.T) {
	run := &record.Run{}
	for i, objects := range []float64{0, 2, 0.5} {
		run.Samples = append(run.Samples, record.Sample{
			Scenario: "allocations", Peer: "pinion", Route: "/" + string("abc"[i]), Requests: 10, Allocations: &objects,
		})
	}
	j := find(t, run, 12, "pinion", "")[0]
	if j.verdict != missed || j.measured(newReport(run, "")) != "2.00"+broken+"(`/b`)" {
		t.Errorf("%+v", j)
	}
	few := 0.004
	run.Samples[1].Allocations, run.Samples[2].Allocations = &few, nil
	if j = find(t, run, 12, "pinion", "")[0]; j.verdict != goalMet || j.measured(newReport(run, "")) != "0.00"+broken+"(on 2 routes)" {
		t.Errorf("%+v", j)
	}
	*run.Samples[1].Allocations = 0
	if j = find(t, run, 12, "pinion", "")[0]; j.verdict != goalMet || j.measured(newReport(run, "")) != "0.00"+broken+"(on 2 routes)" {
		t.Errorf("%+v", j)
	}
	// Noise goes below zero, too.
	less, more := -0.003, -0.02
	run.Samples[0].Allocations, run.Samples[1].Allocations = &less, &more
	if j = find(t, run, 12, "pinion", "")[0]; j.verdict != goalMet || j.measured(newReport(run, "")) != "0.00"+broken+"(on 2 routes)" {
		t.Errorf("%+v", j)
	}
	wants(t, text(t, run), "| `/a` | 0.00 |", "| `/b` | -0.0200 |")
	run.Samples[0].Allocations, run.Samples[1].Allocations = nil, nil
	if j = find(t, run, 12, "pinion", "")[0]; j.verdict != notMeasured {
		t.Errorf("%+v", j)
	}
}

func TestLoops(t *testing.T) {
	run := &record.Run{}
	costing(run, "loops", 64, "engine 1 loop", 10)
	costing(run, "loops", 64, "engine 2 loops", 12)
	j := find(t, run, 13, twoLoops, oneLoop)[0]
	if j.verdict != missed || j.value.Median != 1.2 {
		t.Errorf("%+v", j)
	}
	wants(t, text(t, run), "| **missed** | CPU, two loops against one | engine 2 loops ÷ engine 1 loop | 1.10 | 1.00 | 1.200 |", "| × engine 1 loop |", "\n| **engine 2 loops** | 12.0 | 1.20 |")
}

func TestErrorsSpoilAVerdict(t *testing.T) {
	run := &record.Run{}
	costing(run, "json", 64, "engine", 4)
	costing(run, "json", 64, "gin", 10)
	run.Samples[1].Errors = &record.Errors{Status: 1}
	wants(t, text(t, run), "| goal met, **with errors** | CPU, 1 KiB of JSON | engine ÷ gin | 0.50 | 0.40 | 0.400 |")
}

// Rounds in which one of the two failed are left out, the others count.
func TestRoundsWithoutFigure(t *testing.T) {
	run := &record.Run{}
	costing(run, "json", 64, "engine", 4, 5, 6)
	costing(run, "json", 64, "gin", 10, 10)
	run.Samples[0].Requests = 0
	if j := find(t, run, 6, "engine", "gin")[0]; j.value.N != 1 || j.value.Median != 0.5 {
		t.Errorf("%+v", j)
	}
}

func TestCurve(t *testing.T) {
	sample := func(p50, p99 float64) record.Sample {
		return record.Sample{Requests: 5000, Latency: &record.Latency{Quantiles: []record.Quantile{
			{Part: 0.5, Micros: p50}, {Part: 0.75, Micros: 2 * p50}, {Part: 0.99, Micros: p99}, {Part: 0.9999, Micros: 1e5}, {Part: 1, Micros: 2e5},
		}}}
	}
	points := curve([]record.Sample{sample(100, 1000), sample(300, 3000), sample(200, 2000), {Requests: 9}})
	at := func(odds float64) float64 {
		i := slices.IndexFunc(points, func(p chart.Point) bool { return p.X == odds })
		if i < 0 {
			return 0
		}
		return points[i].Y
	}
	// At odds of 20 the line from (4, 400) to (100, 2000) is half way, by logarithms.
	for odds, want := range map[float64]float64{2: 200, 100: 2000, 20: math.Sqrt(400 * 2000), 700: 0, 1000: 0} {
		if got := at(odds); math.Abs(got-want) > 1e-6 {
			t.Errorf("at 1 in %g: %g, want %g", odds, got, want)
		}
	}
	if last := points[len(points)-1].X; last != 500 {
		t.Errorf("ends at 1 in %g: of 5,000 requests fewer than 10 are slower than any rarer", last)
	}
	// wrk tells three of them.
	points = curve([]record.Sample{{Requests: 1e6, Latency: &record.Latency{P50: 1, P90: 2, P99: 3}}})
	if first, last := points[0], points[len(points)-1]; first.X != 2 || first.Y != 1 || last.X != 100 || last.Y != 3 {
		t.Errorf("from %v to %v", first, last)
	}
	if points := curve([]record.Sample{{Requests: 1e6}}); points != nil {
		t.Errorf("of no latency: %v", points)
	}
}

func TestFileNames(t *testing.T) {
	if got := fileName("Rate 70 %/x"); got != "rate-70---x" || strings.ContainsAny(got, "/ %") {
		t.Error(got)
	}
}

// TestDoubt tests a verdict against the line that it claims: limit 0.70, goal 0.45.
func TestDoubt(t *testing.T) {
	for _, c := range []struct {
		engine []float64
		want   string
	}{
		{[]float64{6, 6, 6, 6, 9}, "met"},                      // one round does not make a doubt
		{[]float64{6, 6, 6, 8, 9}, "undecided (met)"},          // the upper quartile is beyond the bar
		{[]float64{6, 6.5, 7.5, 8, 9}, "undecided (missed)"},   // the lower one is below it
		{[]float64{4, 4.4, 5, 6, 6}, "met"},                    // what is in doubt is not claimed
		{[]float64{4, 4, 4.4, 5, 6}, "met, goal undecided"},    // the bar holds, the goal may not
		{[]float64{4, 4, 4.4, 7.1, 8}, "undecided (goal met)"}, // neither may
		{[]float64{4, 4.1, 4.2, 4.4, 8}, "goal met"},           // all of the middle half does
		{[]float64{7.5, 8, 8, 8, 9}, "**missed**"},
	} {
		run := &record.Run{}
		costing(run, "pipeline", 64, "engine", c.engine...)
		costing(run, "pipeline", 64, "fasthttp", 10, 10, 10, 10, 10)
		if got := strings.ReplaceAll(find(t, run, 4, "engine", "fasthttp")[0].text(), "\u00a0", " "); got != c.want {
			t.Errorf("%v: %q, want %q", c.engine, got, c.want)
		}
	}
}

// TestTally counts a bar by its worst row.
func TestTally(t *testing.T) {
	for _, c := range []struct {
		rows []verdict
		want string
	}{
		{[]verdict{goalMet, met, undecided, missed}, "**0 met** (0 of them with the goal), **1 missed**, **0 undecided**, 0 not"},
		{[]verdict{goalMet, undecided, met}, "**0 met** (0 of them with the goal), **0 missed**, **1 undecided**, 0 not"},
		{[]verdict{goalMet, met, notMeasured}, "**1 met** (0 of them with the goal), **0 missed**, **0 undecided**, 0 not"},
		{[]verdict{notMeasured}, "**0 met** (0 of them with the goal), **0 missed**, **0 undecided**, 1 not"},
	} {
		var b strings.Builder
		tally(&b, map[int][]verdict{4: c.rows})
		wants(t, b.String(), c.want)
	}
}

// TestLimited has a generator that was behind in one round of three, and in two.
func TestLimited(t *testing.T) {
	run := &record.Run{}
	for round := range 3 {
		run.Samples = append(run.Samples, record.Sample{Scenario: "rate", Conns: 256, Peer: "engine", Round: round, Rate: 100, Behind: round == 0})
	}
	key := run.Samples[0].Key()
	if newReport(run, "").limited(key) {
		t.Error("one round of three decides")
	}
	run.Samples[1].Behind = true
	if !newReport(run, "").limited(key) {
		t.Error("two rounds of three do not decide")
	}
}
