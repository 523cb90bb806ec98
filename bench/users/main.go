// Command users measures what a request for 20 users costs: pinion against the plain
// service in bench/plain, on the same MariaDB, Redis and member service, which it
// starts. It prints the tables of docs/benchmarks/users.md.
//
//	cd bench && go run ./users -rounds 7
//
// The service that is measured has a CPU for itself; the databases, the member service
// and the client share the others. Rounds are interleaved, so that what else happens on
// the host hits both alike.
//
// Three cases, each for both services. An id is asked for once only, so nothing that is
// measured was brought in by the measurement:
//
//   - cold: Redis emptied and filled with the attributes again, the service restarted.
//   - L2: the service restarted again. pinion finds in Redis what it was made to leave
//     there before; the plain service has no cache and joins as ever.
//   - L1: the same process, asked for the same ids once before.
//
// Before the first two, connections and pools are warmed with ids that are not measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"pinion/affinity"
)

// options is what the flags say.
type options struct {
	root           string
	rounds, users  int
	server, others affinity.Set // CPUs
}

func main() {
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "users:", err)
		os.Exit(2)
	}
	// What this process starts, and its own threads, stay off the server's CPU.
	if err = affinity.Reexec(affinity.Placement{CPUs: o.others}); err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop) // the next signal ends it at once
		if err = run(ctx, o); ctx.Err() != nil {
			err = errInterrupted
		}
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "users:", err)
		os.Exit(1)
	}
}

// errInterrupted is what ends a run that somebody called off, whatever else failed by that.
var errInterrupted = errors.New("interrupted")

func parse(args []string) (o options, err error) {
	fs := flag.NewFlagSet("users", flag.ContinueOnError)
	fs.StringVar(&o.root, "root", "..", "checkout of pinion")
	fs.IntVar(&o.rounds, "rounds", 7, "interleaved rounds")
	fs.IntVar(&o.users, "users", 50_000, "users to fill in; a fifth of them warm up")
	server := fs.String("server-cpu", "0", "CPU of the service that is measured")
	others := fs.String("other-cpus", "1", "CPUs of the databases, the member service and the client")
	if err = fs.Parse(args); err != nil {
		return o, err
	}
	switch {
	case fs.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case o.rounds < 1:
		return o, fmt.Errorf("-rounds %d: want at least 1", o.rounds)
	case o.users < 1000:
		return o, fmt.Errorf("-users %d: want at least 1000", o.users)
	}
	if _, err = os.Stat(filepath.Join(o.root, "bench", "go.mod")); err != nil {
		return o, fmt.Errorf("-root: %w", err)
	}
	if o.server, err = affinity.ParseSet(*server); err != nil {
		return o, fmt.Errorf("-server-cpu: %w", err)
	}
	if o.others, err = affinity.ParseSet(*others); err != nil {
		return o, fmt.Errorf("-other-cpus: %w", err)
	}
	if o.others.Empty() || !o.others.Intersect(o.server).Empty() {
		return o, fmt.Errorf("-other-cpus %v: want CPUs, and none of -server-cpu %v", o.others, o.server)
	}
	allowed, err := affinity.Allowed()
	if err != nil {
		return o, err
	}
	if o.server.Empty() || !o.server.Union(o.others).Difference(allowed).Empty() {
		return o, fmt.Errorf("-server-cpu %v, -other-cpus %v: want some of %v", o.server, o.others, allowed)
	}
	return o, nil
}

func run(ctx context.Context, o options) error {
	c := &cleanup{}
	defer c.run()
	src, err := startSources(ctx, c, o.users)
	if err != nil {
		return err
	}
	pinion, plain, err := build(ctx, c, o, src)
	if err != nil {
		return err
	}
	b := &bench{sources: src, users: o.users, servers: [2]*server{plain, pinion}}
	if err := b.check(ctx); err != nil {
		return fmt.Errorf("check before measuring: %w", err)
	}
	for round := range o.rounds {
		for _, conns := range connections() {
			if err := b.round(ctx, round, conns); err != nil {
				return fmt.Errorf("round %d: %w", round+1, err)
			}
		}
		log.Printf("round %d of %d done", round+1, o.rounds)
	}
	return report(os.Stdout, b.samples, src.versions(ctx))
}
