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

	"pinion/internal/cell"
	"pinion/internal/config"
	"pinion/internal/logsink"
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
	member, err := cell.Inherited()
	if err != nil {
		return fail(stderr, err)
	}
	flags := args
	if member != nil {
		flags = nil // the supervisor has put all into the environment
	}
	cfg, err := config.Parse(flags, environ, stdout)
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
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: cfg.LogLevel}))
	if cfg.Command == config.Topology {
		err = printTopology(&cfg, stdout, log)
	} else {
		s := &server{cfg: &cfg, log: log, sink: sink, accessLog: stdout, cell: member}
		err = s.takeRole(args)
	}
	if err != nil {
		return fail(stderr, err)
	}
	return 0
}

// takeRole makes this process what it has to be: one of several cells, their
// supervisor, or all there is.
func (s *server) takeRole(args []string) (err error) {
	if s.tokens, err = loadTokens(s.cfg); err != nil {
		return s.cfg.Wrong("tokens", err)
	}
	if err := checkSources(s.cfg); err != nil {
		return err
	}
	if s.cell != nil { // its CPUs and memory came with it, its warnings from the supervisor
		s.log = s.log.With("cell", s.cell.Index())
		decide(s.cell.Placement().CPUs, s.cell.Share(), s.log)
		return s.run(untilFirstSignal)
	}
	if s.place, err = newPlace(s.cfg, s.log); err != nil {
		return err
	}
	if err := s.place.settle(s.log); err != nil {
		return s.cfg.Wrong("cpus", err)
	}
	for _, w := range s.cfg.Warnings {
		s.log.Warn(w)
	}
	if len(s.place.cells) > 1 {
		return supervise(s, untilSignal, args)
	}
	return s.run(untilSignal)
}

// untilSignal is untilFirstSignal for a process that answers to nobody: after the
// first signal they have their ordinary effect again, so that a second one ends it.
func untilSignal() (stop context.Context, restore func()) {
	stop, restore = untilFirstSignal()
	context.AfterFunc(stop, restore)
	return stop, restore
}

// untilFirstSignal returns a context that ends with the first SIGTERM, SIGINT or
// SIGHUP, which begins the drain. More of them do nothing: an operator who signals
// all processes at once signals each cell, and so does its supervisor. Under
// nohup(1), SIGHUP stays ignored.
func untilFirstSignal() (stop context.Context, restore func()) {
	signals := []os.Signal{syscall.SIGTERM, os.Interrupt}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signal.NotifyContext(context.Background(), signals...)
}

// fail tells err in one line and returns its exit status.
func fail(stderr io.Writer, err error) int {
	var (
		usage *config.UsageError
		ended *cell.ExitError
	)
	status := exitFailure
	if errors.As(err, &usage) {
		status = exitUsage
	}
	if errors.As(err, &ended) {
		status = ended.ExitCode()
		if errors.Is(err, cell.ErrNeverReady) && ended.Status != nil && ended.Status.ExitCode() > 0 {
			return status // the cell has said why
		}
	}
	_, _ = fmt.Fprintln(stderr, "server:", config.OneLine(err.Error()))
	return status
}
