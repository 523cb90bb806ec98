package main

import (
	"errors"
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
			without(t, err)
		}
	}
}

// without fails or skips for want of something.
func without(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	t.Skip(err)
}

// TestRun is a whole run, of few servers and loads.
func TestRun(t *testing.T) {
	need(t, "wrk", "taskset", "gcc")
	cpus, err := measure.ChooseCPUs("", "")
	if err != nil {
		without(t, err) // one CPU is not enough
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
		"-peers no-such":   `-peers: there is no "no-such", only pinion,`,
		"-scenarios x":     `-scenarios: there is no "x", only ping,`,
		"b":                `unexpected argument "b"`,
		"-server-cpus 1-0": "-server-cpus",
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", args, err, want)
		}
	}
	o, err := parse(strings.Fields("-quick -peers engine,gnet -scenarios ping"))
	if err != nil || o.rounds != 3 || o.budget > 3*time.Minute || !slices.Equal(o.peers, []string{"engine", "gnet"}) || !slices.Equal(o.scenarios, []string{"ping"}) {
		t.Errorf("got %+v, %v", o, err)
	}
}

// TestCommand has the page tell how to make such a run.
func TestCommand(t *testing.T) {
	for args, want := range map[string]string{
		"-out /x/raw.json":                        "make bench-peers",
		"-quick -peers a":                         "make bench-quick ARGS='-peers a'",
		"-out /x/raw.json -scenarios b -rounds 2": "make bench-peers ARGS='-scenarios b -rounds 2'",
	} {
		o := options{args: strings.Fields(args), quick: strings.Contains(args, "-quick")}
		if got := o.command(); got != want {
			t.Errorf("%s: got %s, want %s", args, got, want)
		}
	}
}

// TestNothingChosen has servers that no scenario of those chosen is for.
func TestNothingChosen(t *testing.T) {
	l := &lab{options: options{peers: []string{"nginx"}, scenarios: []string{"allocations"}}, run: &record.Run{}}
	if err := l.plan(t.Context()); !errors.Is(err, errNothing) {
		t.Errorf("got %v", err)
	}
}

// TestCutOff ends a run in its first round: what was in the file stays, and what was
// measured is beside it.
func TestCutOff(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "here")
	whole := output{filepath.Join(dir, "raw.json")}
	first := &record.Run{Command: "first"}
	if err := errors.Join(whole.keep(first), whole.finish(first)); err != nil {
		t.Fatal(err)
	}
	l := &lab{out: whole, run: &record.Run{Command: "second"}, log: progress{out: os.Stderr}}
	if err := l.out.keep(l.run); err != nil {
		t.Fatal(err)
	}
	l.run.Samples = []record.Sample{{Scenario: "ping", Conns: 64, Peer: "engine", Requests: 1, Seconds: 1}}
	if err := l.end(errInterrupted); !errors.Is(err, errInterrupted) {
		t.Errorf("got %v", err)
	}
	if r, err := record.Read(whole.path); err != nil || r.Command != "first" {
		t.Errorf("the file holds %+v, %v", r, err)
	}
	if r, err := record.Read(whole.partial()); err != nil || r.Command != "second" || !strings.Contains(r.Partial, "interrupted") {
		t.Errorf("beside it is %+v, %v", r, err)
	}
	// A run that gets to its end takes the place of both.
	if err := l.end(nil); err != nil {
		t.Error(err)
	}
	if r, err := record.Read(whole.path); err != nil || r.Command != "second" || r.Partial != "" {
		t.Errorf("the file holds %+v, %v", r, err)
	}
	if _, err := os.Stat(whole.partial()); !os.IsNotExist(err) {
		t.Errorf("left behind: %v", err)
	}
}

// TestOutput has places where nothing can be written, which must show at the start.
func TestOutput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(file, "raw.json"), filepath.Dir(file)} {
		if err := (output{path}).keep(&record.Run{}); err == nil || !strings.Contains(err.Error(), "-out") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
