// Command run measures pinion beside other servers and writes the raw data that the
// report is made from.
//
//	cd bench && go run ./run -out ../docs/benchmarks/raw.json
//
// Servers have CPUs of their own and so has the generator. Every server answers the same
// bytes, which is proved before anything is timed. For each measurement a server is
// started anew and warmed. Rounds are interleaved: what else happens on the host hits all
// servers of a scenario alike, and ratios are taken within a round. Where a figure moves
// too much between rounds there are more of them, as long as the budget lasts.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"pinion/affinity"
	"pinion/bench/measure"
	"pinion/bench/peers"
	"pinion/bench/scenario"
)

// options is what the flags say.
type options struct {
	root, out        string
	args             []string // that it was parsed from
	rounds           int
	budget           time.Duration
	quick            bool
	peers, scenarios []string // empty: all
	cpus             measure.CPUs
}

// command returns what makes such a run.
func (o *options) command() string {
	c := "make bench-peers"
	if o.quick {
		c = "make bench-quick"
	}
	// What make adds by itself is not the user's.
	var args []string
	for i := 0; i < len(o.args); i++ {
		switch o.args[i] {
		case "-quick":
		case "-out":
			i++
		default:
			args = append(args, o.args[i])
		}
	}
	if args != nil {
		c += " ARGS='" + strings.Join(args, " ") + "'"
	}
	return c
}

func main() {
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(2)
	}
	// What this process starts, and its own threads, stay off the servers' CPUs.
	if err = affinity.Reexec(affinity.Placement{CPUs: o.cpus.Load}); err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop) // the next signal ends it at once
		err = run(ctx, o)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func parse(args []string) (o options, err error) {
	o.args = args
	fs := flag.NewFlagSet("run", flag.ContinueOnError)
	fs.StringVar(&o.root, "root", "..", "checkout of pinion")
	fs.StringVar(&o.out, "out", "", "file for the raw data; empty = none")
	fs.IntVar(&o.rounds, "rounds", 5, "interleaved rounds, before those for what is unsteady")
	fs.DurationVar(&o.budget, "budget", 19*time.Minute, "no round starts that would not end by then")
	fs.BoolVar(&o.quick, "quick", false, "a part of the scenarios and servers, at most three rounds, under three minutes")
	some := fs.String("peers", "", "servers to measure, with commas between; empty = all of: "+strings.Join(peerNames(), ","))
	parts := fs.String("scenarios", "", "scenarios to measure, with commas between; empty = all of: "+strings.Join(scenarioNames(), ","))
	server := fs.String("server-cpus", "", "CPUs of the server; empty = the first that may be used")
	load := fs.String("load-cpus", "", "CPUs of the generators; empty = all others")
	if err = fs.Parse(args); err != nil {
		return o, err
	}
	switch {
	case fs.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case o.rounds < 1:
		return o, fmt.Errorf("-rounds %d: want at least 1", o.rounds)
	}
	if o.quick {
		o.rounds, o.budget = min(o.rounds, 3), min(o.budget, 165*time.Second)
	}
	if o.peers, err = choose(*some, peerNames()); err != nil {
		return o, fmt.Errorf("-peers: %w", err)
	}
	if o.scenarios, err = choose(*parts, scenarioNames()); err != nil {
		return o, fmt.Errorf("-scenarios: %w", err)
	}
	o.cpus, err = measure.ChooseCPUs(*server, *load)
	return o, err
}

// choose splits a list of names, all of which must be among those there are.
func choose(list string, there []string) ([]string, error) {
	chosen := slices.DeleteFunc(strings.Split(list, ","), func(s string) bool { return s == "" })
	for _, name := range chosen {
		if !slices.Contains(there, name) {
			return nil, fmt.Errorf("there is no %q, only %s", name, strings.Join(there, ", "))
		}
	}
	return chosen, nil
}

func peerNames() []string {
	var names []string
	for _, p := range peers.All() {
		names = append(names, p.Name)
	}
	return names
}

func scenarioNames() []string {
	all, err := scenario.All("")
	if err != nil {
		return nil // the run itself will say
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	return slices.Compact(names)
}
