// Command server is pinion: a JSON API server that joins users from SQL,
// attributes and memberships, and answers them from memory where it can.
//
// ARCHITECTURE.md draws the rooms this file wires together.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"pinion/affinity"
	"pinion/internal/config"
	"pinion/internal/logsink"
	"pinion/users/sqldb"
)

// version is stamped by make build.
var version = "dev"

// Exit statuses: what is wrong with the host, and what is wrong with the call.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() { os.Exit(run(os.Args[1:], os.Environ(), os.Stdout, os.Stderr)) }

// run is main with its surroundings as parameters; it returns the exit status.
// Whatever ends it is told in one line.
func run(args, environ []string, stdout, stderr io.Writer) int {
	sink := logsink.New(stderr)
	defer sink.Close(lastWords)
	stderr = sink
	cfg, err := config.Parse(args, environ, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return fail(stderr, err)
	case cfg.Command == config.Version:
		_, _ = fmt.Fprintf(stdout, "pinion %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return 0
	}
	// A reader of our output that goes away is no reason to stop serving.
	signal.Ignore(syscall.SIGPIPE)
	tokens, err := loadTokens(cfg)
	if err != nil {
		return fail(stderr, cfg.Wrong("tokens", err))
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: cfg.LogLevel}))
	if err := pin(cfg.CPUs, log); err != nil {
		return fail(stderr, cfg.Wrong("cpus", err))
	}
	for _, w := range cfg.Warnings {
		log.Warn(w)
	}

	// The first signal begins the drain; from then on signals have their
	// ordinary effect, so that a second one ends the process.
	stop, restore := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer restore()
	context.AfterFunc(stop, restore)

	s := &server{cfg: cfg, log: log, sink: sink, tokens: tokens, accessLog: stdout}
	if err := s.open(stop); err != nil {
		s.closeInTime()
		if stop.Err() != nil {
			return 0 // it was told to stop while it started
		}
		return fail(stderr, err)
	}
	err = s.serve(stop)
	s.closeInTime()
	if err != nil {
		return fail(stderr, err)
	}
	return 0
}

// pin gives the process its CPUs, by starting it again with the right mask, and
// sizes GOMAXPROCS after them and the cgroup's quota.
func pin(cpus affinity.Set, log *slog.Logger) error {
	if cpus.Empty() {
		allowed, err := affinity.Allowed()
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		cpus = allowed
	} else if err := affinity.Reexec(affinity.Placement{CPUs: cpus}); err != nil {
		return err
	}
	decision, err := affinity.Apply(cpus, 1)
	if err != nil {
		log.Warn("a CPU limit could not be read", "error", err)
	}
	log.Info("cpus decided", "decision", decision)
	return nil
}

// fail tells err in one line and returns its exit status.
func fail(stderr io.Writer, err error) int {
	_, _ = fmt.Fprintln(stderr, "server:", config.OneLine(err.Error()))
	var usage *config.UsageError
	if errors.As(err, &usage) || errors.Is(err, sqldb.ErrUnsupported) {
		return exitUsage
	}
	return exitFailure
}
