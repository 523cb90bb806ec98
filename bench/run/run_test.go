package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pinion/bench/measure"
	"pinion/bench/peers"
	"pinion/bench/record"
	"pinion/bench/scenario"
)

// need fails where the tests must all run, and skips elsewhere, if a program is not there.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
}

// TestRun is a whole run, of few servers and loads.
func TestRun(t *testing.T) {
	need(t, "wrk", "taskset", "gcc")
	cpus, err := measure.ChooseCPUs("", "")
	if err != nil {
		t.Skip(err) // one CPU is not enough
	}
	out := filepath.Join(t.TempDir(), "raw.json")
	err = run(t.Context(), options{
		root: "../..", out: out, rounds: 1, budget: time.Minute, cpus: cpus,
		peers: []string{"pinion", "engine", "fasthttp", "floor"}, scenarios: []string{"churn", "mix", "rate", "loops", "allocations"},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range r.Samples {
		s := &r.Samples[i]
		name := s.Scenario + " " + s.Peer
		if s.Allocations != nil {
			if *s.Allocations < -0.5 || *s.Allocations > 1 {
				t.Errorf("%s %s: %v allocations a request", name, s.Route, *s.Allocations)
			}
			got = append(got, name)
			continue
		}
		got = append(got, name)
		if s.Requests < 100 || s.Seconds < 0.9 || s.ServerCPU <= 0 || s.GeneratorCPU <= 0 || s.RSS < 1<<20 || s.Latency == nil || s.Errors != nil {
			t.Errorf("%s: %+v, errors %+v", name, s, s.Errors)
		}
		if s.Scenario == "mix" && (s.Beside < 100 || s.Rate != 500 || s.Latency.P50 < 1000 || len(s.Latency.Quantiles) < 5) {
			t.Errorf("%s: %+v", name, s)
		}
	}
	slices.Sort(got)
	want := "allocations pinion,churn engine,churn fasthttp,churn floor,churn pinion,loops engine 1 loop,loops engine 2 loops," +
		"mix engine,mix fasthttp,rate engine,rate fasthttp,rate pinion"
	if got := strings.Join(slices.Compact(got), ","); got != want {
		t.Errorf("measured %s\nwant %s", got, want)
	}
	if len(r.Peers) != 4 || r.Peers[0].SHA256 == "" || r.Peers[0].Answers["ping"] < 100 || r.Peers[2].Version == "" {
		t.Errorf("peers %+v", r.Peers)
	}
	if len(r.Generator) < 6 || r.Host.Kernel == "" || r.Host.CPUs < 2 || len(r.Scenarios) != 5 || len(r.Method) == 0 {
		t.Errorf("checks %+v\nhost %+v\nscenarios %+v\nmethod %v", r.Generator, r.Host, r.Scenarios, r.Method)
	}
}

// TestUnsteady has figures that move, or do not.
func TestUnsteady(t *testing.T) {
	g := &group{Scenario: scenario.Scenario{Scenario: record.Scenario{Name: "ping"}}, conns: 64, rounds: 3}
	g.subjects = []scenario.Subject{{Peer: peers.Peer{Name: "a"}}, {Peer: peers.Peer{Name: "b"}, Name: "b two"}}
	l := &lab{run: &record.Run{Rounds: 3}}
	add := func(peer string, micros ...float64) {
		for i, m := range micros {
			l.run.Samples = append(l.run.Samples, record.Sample{
				Scenario: "ping", Conns: 64, Peer: peer, Round: i, Requests: 1, ServerCPU: m / 1e6,
			})
		}
	}
	add("a", 10, 10, 10)
	if n := l.unsteady(g); n != 50 { // of b two there is nothing
		t.Errorf("one of two: %d", n)
	}
	add("b two", 10, 20, 30)
	if n := l.unsteady(g); n != 50 {
		t.Errorf("one of two: %d", n)
	}
	if g.rounds = 6; l.unsteady(g) != 20 {
		t.Errorf("after three more rounds: %d", l.unsteady(g))
	}
	l.run.Samples = l.run.Samples[:3]
	add("b two", 10, 10.1, 10.2)
	if n := l.unsteady(g); n != 0 {
		t.Errorf("both are steady: %d", n)
	}
}

func TestParse(t *testing.T) {
	for args, want := range map[string]string{
		"-rounds 0":        "-rounds 0",
		"b":                `unexpected argument "b"`,
		"-server-cpus 1-0": "-server-cpus",
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", args, err, want)
		}
	}
	o, err := parse(strings.Fields("-quick -peers a,b -scenarios ping"))
	if err != nil || o.rounds != 3 || o.budget > 3*time.Minute || !slices.Equal(o.peers, []string{"a", "b"}) || !slices.Equal(o.scenarios, []string{"ping"}) {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, wrong := range []options{{peers: []string{"no-such"}}, {scenarios: []string{"no-such"}}} {
		wrong.root = "../.."
		l := &lab{options: wrong, log: progress{out: os.Stderr}}
		if err := l.names(); err == nil || !strings.Contains(err.Error(), `there is no "no-such"`) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

// TestOrder has every round measure each subject once, and no subject come first, or right
// after the same other one, in all of them.
func TestOrder(t *testing.T) {
	const n = 5
	first, before := map[int]int{}, map[[2]int]int{}
	for round := range 2 * n {
		of := order(n, round)
		if sorted := slices.Sorted(slices.Values(of)); !slices.Equal(sorted, []int{0, 1, 2, 3, 4}) {
			t.Fatalf("round %d measures %v", round, of)
		}
		first[of[0]]++
		for i, a := range of[1:] {
			before[[2]int{of[i], a}]++
		}
	}
	for i := range n {
		if first[i] != 2 {
			t.Errorf("%d is first %d times in %d rounds, want 2", i, first[i], 2*n)
		}
	}
	for pair, times := range before {
		if back := before[[2]int{pair[1], pair[0]}]; times != back {
			t.Errorf("%v follow each other %d times, and the other way round %d times", pair, times, back)
		}
	}
}
