package page

import (
	"strings"
	"testing"

	"pinion/bench/record"
)

// TestRepeated has a host that is a tenth slower the second time, one peer that is so by
// half more, and two that change places.
func TestRepeated(t *testing.T) {
	run := func(cpu map[string]float64) *record.Run {
		r := &record.Run{Rounds: 3}
		for peer, v := range cpu {
			r.Peers = append(r.Peers, record.Peer{Name: peer})
			for round := range 3 {
				r.Samples = append(r.Samples, record.Sample{
					Scenario: "ping", Conns: 64, Peer: peer, Round: round, Requests: 1, Seconds: 1, ServerCPU: v / 1e6,
				})
			}
		}
		return r
	}
	first := run(map[string]float64{"engine": 10, "fasthttp": 20, "gnet": 16, "gin": 40, "floor": 8})
	second := run(map[string]float64{"engine": 11, "fasthttp": 22, "gnet": 24.2, "gin": 44, "floor": 8.8})
	text := string(Render(Source{first, "raw.json"}, &Source{second, "again.json"})[Name])
	for _, want := range []string{
		"## Run twice", "([its data](again.json))",
		"| `ping` | 64 | 5 | +10\u00a0% | 37\u00a0% | gnet (16.0, 24.2) and fasthttp (20.0, 22.0) |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	text = string(Render(Source{first, "raw.json"}, &Source{first, "again.json"})[Name])
	if want := "| `ping` | 64 | 5 | +0\u00a0% | 0\u00a0% | the same |"; !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
	if text = string(Render(Source{first, "raw.json"}, nil)[Name]); strings.Contains(text, "twice") {
		t.Error("a second run that was not there")
	}
}
