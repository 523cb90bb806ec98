package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pinion/bench/generator/openloop"
	"pinion/bench/measure"
	"pinion/bench/record"
	"pinion/bench/scenario"
)

const (
	wanted = 80_000 // requests a second of the open-loop generator, from one CPU
	agree  = 0.10   // what the two generators may differ by
)

// subject returns a peer by its name, if it is there.
func (l *lab) subject(name string) (*scenario.Subject, bool) {
	i := slices.IndexFunc(l.subjects, func(s scenario.Subject) bool { return s.Peer.Name == name })
	if i < 0 {
		return nil, false
	}
	return &l.subjects[i], true
}

// with starts a peer, and has f measure it.
func (l *lab) with(ctx context.Context, name string, f func(p *measure.Process) error) error {
	s, ok := l.subject(name)
	if !ok {
		return fmt.Errorf("%s is not among the servers", name)
	}
	return l.With(ctx, s, false, f)
}

// opens reports whether the run has a scenario with the open-loop generator.
func (l *lab) opens() bool {
	return slices.ContainsFunc(l.groups, func(g *group) bool { return g.Kind == scenario.Open })
}

// calibrate sees whether both generators agree. They do so on one connection: on many, where a client is the limit, wrk starts the
// clock of a request when it comes to send it, which is later than when it could have. And
// they do so on a handler that takes a millisecond: wrk makes six system calls for a
// request and this generator three (strace -c), of which a ping is a good part.
func (l *lab) calibrate(ctx context.Context) error {
	if !l.opens() {
		return nil
	}
	var wrk, own struct{ rate, p50 []float64 }
	err := l.with(ctx, "fasthttp", func(p *measure.Process) error {
		url := "http://" + p.Addr + "/sleep"
		for range l.repeats() {
			one := measure.Wrk{CPUs: l.CPUs.Load, Conns: 1, Seconds: 1, URL: url}
			loaded, err := one.Run(ctx, l.Dir)
			if err != nil {
				return err
			}
			wrk.rate = append(wrk.rate, loaded.PerSecond())
			wrk.p50 = append(wrk.p50, loaded.Latency.P50)
			r, err := l.Generate(ctx, p, "-conns", "1", "-rate", "0", "-duration", "1s", url)
			if err != nil {
				return err
			}
			own.rate = append(own.rate, float64(r.Requests)/r.Seconds)
			own.p50 = append(own.p50, r.Latency.P50)
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.compare("Requests a second of 1 ms, on one connection to fasthttp, closed loop, beside wrk", "%.0f", own.rate, wrk.rate)
	l.compare("Median latency in µs, the same", "%.0f", own.p50, wrk.p50)
	return nil
}

// firstRate is what a server is asked for of which nothing is known yet.
const firstRate = 20_000

// limit finds the rate at which pings take fasthttp all of its CPUs, for rates that are a
// share of it: in an open loop, on as many connections as they are measured with, since a
// closed loop that is behind sends many at once, which costs less. It is found at the
// share that is measured, and anew for each round: a host does not stay as fast.
func (l *lab) limit(ctx context.Context, conns int, share float64) error {
	steps := 1
	if l.Limit == 0 {
		l.Limit, steps = firstRate/share, 3
	}
	return l.with(ctx, "fasthttp", func(p *measure.Process) error {
		for range steps {
			r, err := l.Generate(ctx, p, "-conns", strconv.Itoa(conns), "-rate", fmt.Sprintf("%.0f", share*l.Limit), "-duration", "1s", "http://"+p.Addr+"/api/ping")
			if err != nil {
				return err
			}
			if r.Requests == 0 || *r.ServerCPU <= 0 {
				return fmt.Errorf("fasthttp answered %d requests in %v s of its CPU", r.Requests, *r.ServerCPU)
			}
			l.Limit = float64(l.CPUs.Server.Len()) * float64(r.Requests) / *r.ServerCPU
		}
		l.limits = append(l.limits, l.Limit)
		return nil
	})
}

// rates notes what the limits were.
func (l *lab) rates() {
	if len(l.limits) > 0 {
		l.run.Method = append(l.run.Method, fmt.Sprintf(
			"By its CPU time per request in an open loop, fasthttp would answer %s pings a second at most; rates are shares of what was found just before their round.",
			record.SpreadOf(l.limits).Text("%.0f")))
	}
}

// repeats is how often a check is made, of which the median counts.
func (l *lab) repeats() int {
	if l.quick {
		return 2
	}
	return 5
}

// compare notes whether the generators agree on a figure.
func (l *lab) compare(name, format string, own, wrk []float64) {
	got, want := record.SpreadOf(own).Median, record.SpreadOf(wrk).Median
	l.note(record.Generator{
		Name: name, OK: math.Abs(got/want-1) <= agree, Expected: want, Measured: got,
		Want: fmt.Sprintf(format+" ± %.0f %%", want, 100*agree), Got: fmt.Sprintf(format, got),
	})
}

func (l *lab) note(g record.Generator) {
	l.run.Generator = append(l.run.Generator, g)
	verdict := "as it should"
	if !g.OK {
		verdict = "NOT as it should"
	}
	l.log.say("generator, %s: %s, want %s: %s", g.Name, g.Got, g.Want, verdict)
}

// generators checks how much the open-loop generator can send, and that it sees a stall.
func (l *lab) generators(ctx context.Context) error {
	if !l.opens() {
		return nil
	}
	if _, ok := l.subject("floor"); ok {
		if err := l.fast(ctx); err != nil {
			return err
		}
	}
	return l.stalled(ctx)
}

// fast has the generator send as much as it can to the server that costs least.
func (l *lab) fast(ctx context.Context) error {
	var most []float64
	var steady *openloop.Result
	err := l.with(ctx, "floor", func(p *measure.Process) (err error) {
		url := "http://" + p.Addr + "/api/ping"
		for range l.repeats() {
			r, err := l.Generate(ctx, p, "-conns", "256", "-rate", "0", "-duration", "1s", url)
			if err != nil {
				return err
			}
			most = append(most, float64(r.Requests)/r.Seconds)
		}
		steady, err = l.Generate(ctx, p, "-conns", "256", "-rate", fmt.Sprint(wanted), "-duration", "1s", url)
		return err
	})
	if err != nil {
		return err
	}
	rate := record.SpreadOf(most)
	l.note(record.Generator{
		Name: "Requests a second from one CPU, as many as it can, to the floor", OK: rate.Median >= wanted,
		Expected: wanted, Measured: rate.Median, Want: fmt.Sprintf("≥ %d", wanted), Got: rate.Text("%.0f"),
	})
	l.note(record.Generator{
		Name: fmt.Sprintf("At a constant %d requests a second to the floor, it sends them and tells its own part", wanted), OK: steady.Achieved >= 0.99*wanted,
		Expected: wanted, Measured: steady.Achieved, Want: fmt.Sprintf("≥ %.0f", 0.99*wanted),
		Got: fmt.Sprintf("%.0f; p99 %.0f µs, of which at most %.0f µs are its own doing", steady.Achieved, steady.Latency.P99, steady.OwnLag.Share),
	})
	return nil
}

// stalled has a server stop for a known time, which must show.
func (l *lab) stalled(ctx context.Context) error {
	addr, err := measure.FreeAddr()
	if err != nil {
		return err
	}
	theory := openloop.Stall{Rate: 2000, Stop: 100 * time.Millisecond, Every: time.Second, Duration: 3 * time.Second}
	p, err := measure.Start(ctx, measure.Config{
		Name: "the server that stalls", Addr: addr, CPUs: l.CPUs.Server, Log: filepath.Join(l.Dir, "stall.log"),
		Command: []string{filepath.Join(l.Dir, "stall"), "-addr", addr, "-stop", theory.Stop.String(), "-every", theory.Every.String()},
	})
	if err != nil {
		return err
	}
	r, err := l.Generate(ctx, p, "-conns", "256", "-rate", fmt.Sprint(theory.Rate), "-duration", theory.Duration.String(), "http://"+addr+"/api/ping")
	var wrk *measure.Loaded
	if err == nil {
		w := measure.Wrk{CPUs: l.CPUs.Load, Conns: 16, Seconds: int(theory.Duration.Seconds()), URL: "http://" + addr + "/api/ping"}
		wrk, err = w.Run(ctx, l.Dir)
	}
	if stopped := p.Stop(); err == nil {
		err = stopped
	}
	if err != nil {
		return err
	}
	for _, q := range []struct {
		part float64
		got  float64
	}{{0.99, r.Latency.P99}, {0.999, r.Latency.P999}} {
		want := float64(theory.Quantile(q.part).Microseconds()) / 1000
		got := q.got / 1000
		percent := strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.1f", 100*q.part), "0"), ".")
		l.note(record.Generator{
			Name:     fmt.Sprintf("A server that stops for %v each second: p%s", theory.Stop, percent),
			Expected: want, Measured: got, OK: math.Abs(got-want) <= 0.1*want,
			Want: fmt.Sprintf("%.1f ms ± 10 %%", want), Got: fmt.Sprintf("%.1f ms (wrk, with what it fills in for requests it did not send: p99 %.1f ms)", got, wrk.Latency.P99/1000),
		})
	}
	return nil
}
