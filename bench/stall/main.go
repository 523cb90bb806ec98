// Command stall is a server that is known to stop: it answers as bench's peers answer a
// ping, and holds all answers back for a time, again and again. What a load generator
// says of it can be compared with what it must say.
//
//	taskset -c 0 stall -addr 127.0.0.1:8080 -stop 100ms -every 2s
//	stall -expect -rate 1000 -duration 10s -stop 100ms -every 2s
//
// The second prints, as JSON, the latencies in microseconds that an open loop has to see,
// and how many requests must take at least half of a stop.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"pinion/bench/generator/openloop"
	"pinion/bench/record"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("stall", flag.ContinueOnError)
	fs.SetOutput(stderr)
	addr := fs.String("addr", "127.0.0.1:8080", "to listen on")
	var s openloop.Stall
	fs.DurationVar(&s.Stop, "stop", 100*time.Millisecond, "length of a stop; 0: none")
	fs.DurationVar(&s.Every, "every", 2*time.Second, "from the beginning of a stop to that of the next")
	expect := fs.Bool("expect", false, "print what an open loop must see, and serve nothing")
	fs.Float64Var(&s.Rate, "rate", 1000, "of the open loop, with -expect")
	fs.DurationVar(&s.Duration, "duration", 10*time.Second, "of the open loop, with -expect")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if s.Stop < 0 || s.Every <= s.Stop || s.Rate <= 0 || s.Duration <= 0 || fs.NArg() > 0 {
		fmt.Fprint(stderr, "stall: want no arguments, 0 <= -stop < -every, and -rate and -duration above 0\n")
		return 2
	}
	var err error
	if *expect {
		err = json.NewEncoder(stdout).Encode(expected{s.Latency(), s.Slower(s.Stop / 2)})
	} else {
		err = serve(*addr, s.Stop, s.Every)
	}
	if err != nil {
		fmt.Fprintf(stderr, "stall: %v\n", err)
		return 1
	}
	return 0
}

type expected struct {
	Latency record.Latency `json:"latency"`
	// Slower is how many requests take at least half of a stop.
	Slower float64 `json:"slower"`
}

func serve(addr string, stop, every time.Duration) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	var g gate
	if stop > 0 {
		go g.run(stop, every)
	}
	return fasthttp.Serve(ln, g.ping)
}

// gate holds handlers up while it is closed.
type gate struct{ mu sync.RWMutex }

func (g *gate) ping(ctx *fasthttp.RequestCtx) {
	g.mu.RLock()
	g.mu.RUnlock() //nolint:staticcheck // to have waited is all
	ctx.SetContentType("application/json")
	ctx.SetBodyString(`{"status":"ok"}`)
}

// run closes the gate at the end of each period. It goes by the clock, so that a timer
// that is late makes neither the stops longer nor the periods.
func (g *gate) run(stop, every time.Duration) {
	for start := time.Now(); ; start = start.Add(every) {
		end := start.Add(every)
		time.Sleep(time.Until(end.Add(-stop)))
		g.mu.Lock()
		time.Sleep(time.Until(end))
		g.mu.Unlock()
	}
}
