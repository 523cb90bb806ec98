package record

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestWriteRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raw.json")
	none := 0.0
	for _, samples := range [][]Sample{nil, {{Scenario: "ping", Conns: 64, Peer: "a", Requests: 3}}, {
		{Scenario: "ping", Peer: "a", Latency: &Latency{P50: 1.5, Quantiles: []Quantile{{0.5, 1.5}}}},
		{Scenario: "idle", Peer: "b", Errors: &Errors{Status: 2}, Allocations: &none},
	}} {
		run := &Run{Command: "make", Host: Host{CPU: "one"}, Peers: []Peer{{Name: "a"}}, Samples: samples}
		if err := run.Write(path); err != nil {
			t.Fatal(err)
		}
		got, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(samples) == 0 {
			got.Samples = nil
		}
		if !reflect.DeepEqual(got, run) {
			t.Errorf("got %+v, want %+v", got, run)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n{\"scenario\""); n != 2 {
		t.Errorf("%d samples have a line of their own, want 2:\n%s", n, text)
	}
	if err := os.WriteFile(path, []byte(`{"version":7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); !errors.Is(err, ErrVersion) {
		t.Errorf("another version: %v", err)
	}
	if left, _ := filepath.Glob(path + ".*"); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestPerConnection(t *testing.T) {
	for _, c := range []struct {
		sample Sample
		want   float64
	}{
		{Sample{Open: 100, RSSBefore: 1000, RSS: 21000}, 200},
		{Sample{Open: 100, OpenBefore: 60, RSSBefore: 1000, RSS: 21000}, 500},
		{Sample{Open: 100, OpenBefore: 100, RSSBefore: 1000, RSS: 21000}, 0},
		{Sample{RSS: 21000}, 0},
	} {
		if got := c.sample.PerConnection(); got != c.want {
			t.Errorf("%+v: %g, want %g", c.sample, got, c.want)
		}
	}
}

func TestSpreadOf(t *testing.T) {
	for _, c := range []struct {
		v        []float64
		want     Spread
		unsteady bool
	}{
		{[]float64{3}, Spread{3, 3, 3, 3, 3, 1}, true},
		{[]float64{100, 101, 99}, Spread{100, 99, 101, 99.5, 100.5, 3}, false},
		{[]float64{5, 1, 4, 2, 3}, Spread{3, 1, 5, 2, 4, 5}, true},
		{[]float64{0, 0, 0}, Spread{N: 3}, true}, // of nothing measured, no width can be told
		{[]float64{96, 97, 100, 104, 500}, Spread{100, 96, 500, 97, 104, 5}, false},
	} {
		got := SpreadOf(c.v)
		if got != c.want || got.Unsteady() != c.unsteady {
			t.Errorf("%v: got %v unsteady=%v", c.v, got, got.Unsteady())
		}
	}
	if s := SpreadOf(nil); !math.IsNaN(s.Median) || !s.Unsteady() {
		t.Errorf("of nothing: %v", s)
	}
	if got := SpreadOf([]float64{1, 2, 6}).Text("%.1f"); got != "2.0 (1.0 to 6.0)" {
		t.Error(got)
	}
}

func TestRatios(t *testing.T) {
	run := &Run{}
	add := func(peer string, round int, cpu float64) {
		run.Samples = append(run.Samples, Sample{Scenario: "ping", Peer: peer, Round: round, ServerCPU: cpu, Requests: 1})
	}
	add("a", 0, 2)
	add("b", 0, 4)
	add("b", 1, 5) // a has no round 1
	add("b", 2, 9)
	add("a", 2, 3)
	got := run.Ratios(Key{"ping", 0, "a"}, Key{"ping", 0, "b"}, (*Sample).Micros)
	if !slices.Equal(got, []float64{0.5, 1. / 3}) {
		t.Errorf("got %v", got)
	}
}

// TestCPU has a host that is twice as slow in one round, and a peer that is so by itself
// in another.
func TestCPU(t *testing.T) {
	run := &Run{}
	add := func(peer string, cpu ...float64) {
		for round, v := range cpu {
			run.Samples = append(run.Samples, Sample{Scenario: "ping", Peer: peer, Round: round, ServerCPU: v / 1e6, Requests: 1})
		}
	}
	add("a", 10, 20, 10, 10, 10)
	add("b", 30, 60, 30, 30, 30)
	add("c", 5, 10, 5, 5, 10)
	add("d", 7, 14, 7, 7, 7)
	for peer, want := range map[string][]float64{
		"a": {10, 10, 10, 10, 10},
		"c": {5, 5, 5, 5, 10},
	} {
		got := run.CPU(Key{Scenario: "ping", Peer: peer})
		for i := range want {
			if len(got) != len(want) || math.Abs(got[i]-want[i]) > 1e-9 {
				t.Fatalf("%s: got %v, want %v", peer, got, want)
			}
		}
	}
	run.Samples = run.Samples[:10]
	if got := run.CPU(Key{Scenario: "ping", Peer: "a"}); got[1] != 20 {
		t.Errorf("of two peers: %v", got)
	}
	if got := run.CPU(Key{Scenario: "ping", Peer: "nobody"}); got != nil {
		t.Errorf("got %v", got)
	}
}
