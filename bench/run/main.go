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
)

// options is what the flags say.
type options struct {
	root, out        string
	rounds           int
	budget           time.Duration
	quick            bool
	peers, scenarios []string // empty: all
	cpus             measure.CPUs
}

func main() {
	o, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(2)
	}
	// What this process starts, and its own threads, stay off the servers' CPUs.
	if err = affinity.Reexec(affinity.Placement{CPUs: o.cpus.Load}); err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx, o)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func parse(args []string) (o options, err error) {
	fs := flag.NewFlagSet("run", flag.ContinueOnError)
	fs.StringVar(&o.root, "root", "..", "checkout of pinion")
	fs.StringVar(&o.out, "out", "", "file for the raw data; empty = none")
	fs.IntVar(&o.rounds, "rounds", 5, "interleaved rounds, before those for what is unsteady")
	fs.DurationVar(&o.budget, "budget", 18*time.Minute, "no round starts that would not end by then")
	fs.BoolVar(&o.quick, "quick", false, "a part of the scenarios and servers, three rounds, under three minutes")
	some := fs.String("peers", "", "servers to measure, with commas between; empty = all")
	parts := fs.String("scenarios", "", "scenarios to measure, with commas between; empty = all")
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
		o.rounds, o.budget = min(o.rounds, 3), min(o.budget, 150*time.Second)
	}
	o.peers, o.scenarios = names(*some), names(*parts)
	o.cpus, err = measure.ChooseCPUs(*server, *load)
	return o, err
}

// names splits a list.
func names(list string) []string {
	return slices.DeleteFunc(strings.Split(list, ","), func(s string) bool { return s == "" })
}
