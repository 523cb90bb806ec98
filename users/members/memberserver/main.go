// Command memberserver serves the memberships of pinion's made-up users: those that
// `server -demo N` has, for the same ids. It is for trying things out, and can be slow,
// fail and hang on request. See package service for what it answers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"pinion/users"
	"pinion/users/members/service"
	"pinion/users/sqldb"
)

// drainTimeout is how long requests in flight have when the process is told to end.
const drainTimeout = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stderr)
	stop()
	os.Exit(status)
}

// config is what the flags say.
type config struct {
	addr  string
	users int
	knobs service.Knobs
}

// run serves until ctx ends, and returns the exit status: 2 for wrong flags, 1 for any
// other failure.
func run(ctx context.Context, args []string, stderr io.Writer) int {
	cfg, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "memberserver:", err) //nolint:errcheck // nobody to tell
		return 2
	}
	if err := serve(ctx, cfg, slog.New(slog.NewTextHandler(stderr, nil))); err != nil {
		fmt.Fprintln(stderr, "memberserver:", err) //nolint:errcheck // nobody to tell
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (cfg config, err error) {
	fs := flag.NewFlagSet("memberserver", flag.ContinueOnError)
	fs.StringVar(&cfg.addr, "addr", "127.0.0.1:8090", "`address` to listen on")
	fs.IntVar(&cfg.users, "members", 100_000, "`number` of made-up users, of whom two in three are members")
	fs.DurationVar(&cfg.knobs.Latency, "latency", 0, "`time` before each answer")
	fs.DurationVar(&cfg.knobs.Jitter, "jitter", 0, "`time` added to it at most, at random")
	fs.Float64Var(&cfg.knobs.FailRatio, "fail-ratio", 0, "`part` of requests that fail, from 0 to 1")
	fs.Float64Var(&cfg.knobs.HangRatio, "hang-ratio", 0, "`part` of requests that are never answered, from 0 to 1")
	fs.Float64Var(&cfg.knobs.GarbageRatio, "garbage-ratio", 0, "`part` of requests that get an answer without sense, from 0 to 1")
	fs.SetOutput(io.Discard) // a wrong flag is one line, not the whole help
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fs.SetOutput(stderr)
			fs.Usage()
		}
		return cfg, err
	}
	switch {
	case fs.NArg() > 0:
		return cfg, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case cfg.users < 0:
		return cfg, fmt.Errorf("-members %d: must not be negative", cfg.users)
	}
	return cfg, cfg.knobs.Check()
}

func serve(ctx context.Context, cfg config, log *slog.Logger) error {
	ln, err := net.Listen("tcp", cfg.addr)
	if err != nil {
		return err
	}
	known := demoMembers(cfg.users)
	s := service.New(func(id int64) (users.Member, bool) {
		m, ok := known[id]
		return m, ok
	})
	if err := s.SetKnobs(cfg.knobs); err != nil {
		return errors.Join(err, ln.Close())
	}
	log.Info("serving", "addr", ln.Addr().String(), "users", cfg.users, "members", len(known))
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := s.Shutdown(limit); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	requests, ids := s.Requests()
	log.Info("stopped", "requests", requests, "ids", ids)
	return <-served
}

// demoMembers returns the members among the made-up users 1 to n.
func demoMembers(n int) map[int64]users.Member {
	known := make(map[int64]users.Member)
	for u := range sqldb.DemoUsers(n) {
		if u.Member != nil {
			known[u.ID] = *u.Member
		}
	}
	return known
}
