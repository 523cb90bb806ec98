// Command compare measures this tree against another commit, for use before a merge: is
// the change faster, slower, or can nothing be told?
//
//	cd bench && go run ./compare -ref main~1
//
// Both are built, and measured in pairs that follow each other at once, in turns first
// and second, each time with a server started anew. What else happens on the host hits
// both of a pair, so the figure is the ratio within a pair, of CPU time per request. Of
// the ratios it prints the median and an interval around it, by order statistics. With 95 %
// confidence the true medians of all three scenarios lie in theirs: nothing is assumed about how they are distributed.
//
// The product's own binary answers pings and asks for 20 users; the handler that blocks
// is the engine peer of this tree, built against the product of either.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"pinion/affinity"
	"pinion/bench/measure"
)

// options is what the flags say.
type options struct {
	root, ref string
	pairs     int
	cpus      measure.CPUs
}

func main() {
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(2)
	}
	if err = affinity.Reexec(affinity.Placement{CPUs: o.cpus.Load}); err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop) // the next signal ends it at once
		err = run(ctx, o)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func parse(args []string) (o options, err error) {
	fs := flag.NewFlagSet("compare", flag.ContinueOnError)
	fs.StringVar(&o.root, "root", "..", "checkout of pinion")
	fs.StringVar(&o.ref, "ref", "", "the commit to compare with")
	fs.IntVar(&o.pairs, "pairs", 15, "pairs of measurements for each scenario")
	server := fs.String("server-cpus", "", "CPUs of the server; empty = the first that may be used")
	load := fs.String("load-cpus", "", "CPUs of the generators; empty = all others")
	if err = fs.Parse(args); err != nil {
		return o, err
	}
	switch {
	case fs.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case o.ref == "":
		return o, errors.New("-ref: want the commit to compare with")
	case o.pairs < fewest:
		return o, fmt.Errorf("-pairs %d: want at least %d, fewer show nothing", o.pairs, fewest)
	}
	o.cpus, err = measure.ChooseCPUs(*server, *load)
	return o, err
}
