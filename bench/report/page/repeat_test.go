package page

import (
	"strings"
	"testing"

	"pinion/bench/record"
)

// both renders two runs, with plain spaces.
func both(first, second *record.Run) string {
	page := string(Render(Source{first, "raw.json"}, &Source{second, "again.json"})[Name])
	return strings.ReplaceAll(page, "\u00a0", " ")
}

func TestRunTwice(t *testing.T) {
	cost := map[string]float64{"engine": 10, "fasthttp": 20, "gnet": 16, "gin": 40, "floor": 8}
	first, second := loaded(cost, 1, 1, 2, 1, 1), loaded(cost, 1, 1, 1, 5, 1, 1)
	first.Revision, second.Revision = "abc", "abc"
	first.Host.Load, second.Host.Load = "0.12", "1.78"
	page := both(first, second)
	wants(t, page, "## Run twice\n\n**Of 10 pairs of peers that both runs tell apart, none comes out the other way round in the second: as far as both tell it, the order holds. 5 of 5 figures (100 %) are within 10 % of each other; the greatest distance is 0 %.**",
		"Of 10 pairs of peers the first run tells 10 apart, the second 10. Of those of the first, the second tells 10 the same way, 0 not at all, and 0 the other way round; of those of the second, the first does not tell 0.",
		"| first run | at an unknown time | `abc` | 5 | 0.12 | [raw.json](raw.json) |", "| second run | at an unknown time | `abc` | 6 | 1.78 | [again.json](again.json) |",
		"| `ping` | 64 | 5 | 10 | 10 | 0 | 0 | 0 % (")
	lacks(t, page, "revisions differ", "planned for", "contrary are")

	cost["gnet"] = 25
	second = loaded(cost, 1, 1, 1, 1, 1)
	second.Revision = "def"
	page = both(first, second)
	wants(t, page, "**Of 10 pairs of peers that both runs tell apart, 1 comes out the other way round in the second: the order does not hold everywhere. 4 of 5 figures (80 %) are within 10 % of each other; the greatest distance is 56 %.**",
		"The greatest distance is that of gnet in `ping` with 64 connections.", "The revisions differ",
		"| `ping` | 64 | 5 | 10 | 9 | 0 | 1 | 56 % (gnet) |", "- `ping`, 64 connections: contrary are gnet and fasthttp.")

	page = both(first, loaded(cost, 1, 1, 1, 1))
	wants(t, page, "**No pair of peers is told apart by both runs, so they say nothing of the order.", "planned for 4 rounds only",
		"the second tells 0 the same way, 10 not at all", "| `ping` | 64 | 5 | 10 | 0 | 10 | 0 |")

	wants(t, both(first, &record.Run{}), "**The two runs have no load in common that could be compared.**")
	lacks(t, string(Render(Source{first, "raw.json"}, nil)[Name]), "twice", "second")
}

// TestVerdictsTwice has bar 2 met twice, bar 3 met and then missed, and bar 1 missed and
// then in doubt.
func TestVerdictsTwice(t *testing.T) {
	first := loaded(map[string]float64{"engine": 10, "fasthttp": 20, "gnet": 12, "floor": 5}, 1, 1, 1, 1, 1)
	second := loaded(map[string]float64{"engine": 10, "fasthttp": 18, "gnet": 8}, 1, 1, 1, 1, 1)
	costing(second, "ping", 64, "floor", 8, 8, 9, 10, 10)
	page := both(first, second)
	wants(t, page, "| measured | second run |",
		"| 1 | **missed** | CPU, ping, 64 connections | engine ÷ floor | 1.12 | 1.05 | 2.000 (2.000 to 2.000) | 1.111, undecided (met) |",
		"| 2 | goal met | CPU, ping, 64 connections | engine ÷ fasthttp | 0.87 | 0.75 | 0.500 (0.500 to 0.500) | 0.556 |",
		"| 3 | goal met | CPU, ping, 64 connections | engine ÷ gnet | 0.95 | 0.85 | 0.833 (0.833 to 0.833) | 1.250, **missed** |",
		"the same verdict in 1 of 3 rows", "**Of bar 3, one run says met and the other missed: take neither for granted.**")
	lacks(t, both(first, first), "take neither")
	wants(t, both(first, first), "the same verdict in 3 of 3 rows", "No row that one run calls met is called missed by the other.")
}

// TestSidesTwice has a figure in doubt twice, once on each side of the bar.
func TestSidesTwice(t *testing.T) {
	run := func(micros ...float64) *record.Run {
		r := &record.Run{Rounds: 5}
		costing(r, "pipeline", 64, "engine", micros...)
		costing(r, "pipeline", 64, "fasthttp", 10, 10, 10, 10, 10)
		return r
	}
	page := both(run(6, 6, 6.6, 8, 8), run(6, 6, 7.4, 8, 8))
	wants(t, page, "| 4 | undecided (met) |", "| 0.740, undecided (missed) |", "the same verdict in 1 of 1 row;")
}

// TestSameRivalTwice compares with the best other server of the first run also in the second.
func TestSameRivalTwice(t *testing.T) {
	first, second := loaded(map[string]float64{"engine": 10, "gin": 40}, 1, 1, 1), loaded(map[string]float64{"engine": 10, "gin": 50}, 1, 1, 1)
	costing(first, "ping", 64, "echo", 45, 45, 45)
	costing(second, "ping", 64, "echo", 45, 45, 45)
	for _, run := range []*record.Run{first, second} {
		run.Peers = []record.Peer{{Name: "engine", Language: "Go"}, {Name: "gin", Language: "Go"}, {Name: "echo", Language: "Go"}}
	}
	wants(t, both(first, second), "| engine ÷ gin, best other | 0.95 | 0.85 | 0.250 (0.250 to 0.250) | 0.200 |")
}
