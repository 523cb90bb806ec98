// Command generator sends HTTP/1.1 requests in an open loop: at times that are fixed
// beforehand, with the latency of each counted from when it was due (package openloop
// says why, and how). It says so when it did not keep up itself.
//
//	taskset -c 1 generator -rate 1000 -conns 64 http://127.0.0.1:8080/api/ping
//	taskset -c 1 generator -rate 5000 -shape pulse -on 200ms -off 800ms -json URL
//	taskset -c 1 generator -rate 1000 -beside http://127.0.0.1:8080/api/ping -beside-conns 64 URL
//	taskset -c 1 generator -rate 0 URL    # a closed loop, to compare with wrk
//
// Give it a CPU that is not the server's. With -pid it reads the CPU clock of the server
// and its descendants right before the first and after the last request that counts.
//
// It exits with 0 after a run, even one with errors or one it did not keep up with: the
// output says so; with 1 if there was no run to speak of, such as when nothing listens, or
// if the process of -pid ended in it, with what was measured until then; with 2 on wrong
// flags.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"pinion/bench/generator/openloop"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	c, asJSON, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "generator: %v\n", err)
		return 2
	}
	// One for each loop, which does not give its own away, and one for the rest.
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), c.Threads+1))
	r, err := openloop.Run(context.Background(), c)
	if r != nil {
		err = errors.Join(err, show(stdout, r, asJSON))
	}
	if err != nil {
		fmt.Fprintf(stderr, "generator: %v\n", err)
		return 1
	}
	return 0
}

func show(to io.Writer, r *openloop.Result, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(to).Encode(r)
	}
	_, err := io.WriteString(to, text(r))
	return err
}

// parse reads the flags. The error is one line.
func parse(args []string, help io.Writer) (c openloop.Config, asJSON bool, err error) {
	fs := flag.NewFlagSet("generator", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.IntVar(&c.Conns, "conns", 64, "connections")
	fs.IntVar(&c.Threads, "threads", 1, "event loops; each wants a CPU")
	fs.Float64Var(&c.Rate, "rate", 1000, "requests a second, with pulse while it is on; 0: as fast as answers come")
	fs.StringVar((*string)(&c.Shape), "shape", string(openloop.Constant), "constant, pulse, or jitter: random gaps")
	fs.DurationVar(&c.On, "on", 200*time.Millisecond, "length of a pulse")
	fs.DurationVar(&c.Off, "off", 800*time.Millisecond, "pause between pulses")
	fs.Uint64Var(&c.Seed, "seed", 1, "of jitter")
	fs.IntVar(&c.Warmup, "warmup", 1000, "requests sent first that do not count")
	fs.DurationVar(&c.Duration, "duration", 10*time.Second, "for which requests are due")
	fs.DurationVar(&c.Timeout, "timeout", 10*time.Second, "of a request, and for answers still out at the end")
	fs.StringVar(&c.Method, "method", "GET", "")
	fs.StringVar(&c.Body, "body", "", "")
	fs.Func("header", "`line` as in Accept: text/plain; may be repeated", func(line string) error {
		c.Header = append(c.Header, line)
		return nil
	})
	fs.StringVar(&c.Beside, "beside", "", "`URL` for requests in a closed loop meanwhile, counted apart")
	fs.IntVar(&c.BesideConns, "beside-conns", 0, "connections for -beside (default 64 with it)")
	fs.IntVar(&c.PID, "pid", 0, "`process` of the server, to take its CPU time")
	fs.BoolVar(&asJSON, "json", false, "print JSON")
	if err = fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(help, "usage: generator [flags] http://host:port/path\n")
			fs.SetOutput(help)
			fs.PrintDefaults()
		}
		return c, false, err
	}
	if fs.NArg() != 1 {
		return c, false, fmt.Errorf("want one URL after the flags, got %q", fs.Args())
	}
	c.URL = fs.Arg(0)
	if c.Beside != "" && c.BesideConns == 0 {
		c.BesideConns = 64
	}
	if err = c.Check(); err != nil {
		return c, false, errors.New(strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return c, asJSON, nil
}
