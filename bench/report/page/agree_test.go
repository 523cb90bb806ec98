package page

import (
	"math"
	"slices"
	"testing"

	"pinion/bench/record"
)

func rounds(v ...float64) map[int]float64 {
	m := map[int]float64{}
	for i, x := range v {
		if x > 0 {
			m[i] = x
		}
	}
	return m
}

func TestCheaper(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b []float64
		want int
	}{
		{"all of five", []float64{1, 1, 1, 1, 1}, []float64{2, 2, 2, 2, 2}, -1},
		{"a host that moves both", []float64{1, 5, 9, 20, 3}, []float64{2, 6, 10, 21, 4}, -1},
		{"the other way", []float64{3, 3, 3, 3, 3}, []float64{2, 2, 2, 2, 2}, 1},
		{"all of four", []float64{1, 1, 1, 1}, []float64{2, 2, 2, 2}, 0},
		{"four in common", []float64{1, 1, 1, 1, 0, 1}, []float64{2, 2, 2, 2, 2}, 0},
		{"four of five", []float64{1, 1, 1, 1, 3}, []float64{2, 2, 2, 2, 2}, 0},
		{"a tie is no round", []float64{1, 1, 1, 1, 2}, []float64{2, 2, 2, 2, 2}, 0},
		{"six of seven", []float64{1, 1, 1, 1, 1, 1, 3}, []float64{2, 2, 2, 2, 2, 2, 2}, 0}, // 1 in 8
		{"seven of eight", []float64{1, 1, 1, 1, 1, 1, 1, 3}, []float64{2, 2, 2, 2, 2, 2, 2, 2}, 0},
		{"eight of nine", []float64{1, 1, 1, 1, 1, 1, 1, 1, 3}, []float64{2, 2, 2, 2, 2, 2, 2, 2, 2}, -1}, // 1 in 25
		{"none", nil, nil, 0},
	} {
		costs := perRound{"a": rounds(c.a...), "b": rounds(c.b...)}
		if got := costs.cheaper("a", "b"); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
		if got := costs.cheaper("b", "a"); got != -c.want {
			t.Errorf("%s, turned round: %d, want %d", c.name, got, -c.want)
		}
	}
}

func TestLuck(t *testing.T) {
	for _, c := range []struct {
		few, n int
		want   float64
	}{{0, 5, 1. / 16}, {1, 5, 12. / 32}, {0, 6, 1. / 32}, {1, 8, 18. / 256}, {2, 5, 1}, {3, 6, 1}} {
		if got := luck(c.few, c.n); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d of %d: %g, want %g", c.few, c.n, got, c.want)
		}
	}
}

// TestEffects finds what peers cost though the host is ten times slower in a round, and
// though one of them has not seen that round.
func TestEffects(t *testing.T) {
	costs := perRound{
		"a": rounds(10, 100, 12, 10, 10),
		"b": rounds(20, 200, 24, 20, 20),
		"c": rounds(40, 0, 48, 40, 40),
		"d": rounds(80, 800, 96, 80, 400),
	}
	got := costs.effects([]string{"a", "b", "c", "d"})
	for i, want := range []float64{1, 2, 4, 8} {
		if ratio := math.Exp(got[i] - got[0]); math.Abs(ratio/want-1) > 1e-9 {
			t.Errorf("peer %d costs %g times the first, want %g", i, ratio, want)
		}
	}
}

// loaded makes a run of one load: what each peer costs, by how much the host is slower in
// each round.
func loaded(cost map[string]float64, host ...float64) *record.Run {
	run := &record.Run{Rounds: len(host)}
	for _, peer := range []string{"engine", "fasthttp", "gnet", "gin", "floor"} {
		if cost[peer] == 0 {
			continue
		}
		run.Peers = append(run.Peers, record.Peer{Name: peer})
		var micros []float64
		for _, h := range host {
			micros = append(micros, cost[peer]*h)
		}
		costing(run, "ping", 64, peer, micros...)
	}
	return run
}

func TestAgree(t *testing.T) {
	first := loaded(map[string]float64{"engine": 10, "fasthttp": 20, "gnet": 16, "gin": 40, "floor": 8}, 1, 1, 2, 1, 1)
	// A host that is slower by a tenth, and gnet by a half more.
	second := loaded(map[string]float64{"engine": 11, "fasthttp": 22, "gnet": 26.4, "gin": 44, "floor": 8.8}, 1, 3, 1, 1, 1)
	a := newReport(first, "").agree(newReport(second, ""), "ping", 64)
	if a.pairs != 10 || a.first != 10 || a.second != 10 || a.alike != 9 || !slices.Equal(a.contrary, []string{"gnet and fasthttp"}) {
		t.Errorf("%+v", a)
	}
	if far, peer := a.greatest(); math.Abs(far-0.5) > 1e-9 || peer != "gnet" {
		t.Errorf("%g of %s is the greatest distance", far, peer)
	}
	for i, d := range a.apart {
		if a.peers[i] != "gnet" && d > 1e-9 {
			t.Errorf("%s is apart by %g", a.peers[i], d)
		}
	}
	two := loaded(map[string]float64{"engine": 10, "fasthttp": 20}, 1, 1, 1, 1, 1)
	if a := newReport(two, "").agree(newReport(two, ""), "ping", 64); a != nil {
		t.Errorf("of two peers: %+v", a)
	}
}
