package main

import (
	"fmt"
	"strings"
	"time"

	"pinion/bench/generator/openloop"
	"pinion/bench/record"
)

// text is a result as people read it.
func text(r *openloop.Result) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s "+format+"\n", append([]any{name}, args...)...)
	}
	load := "closed loop"
	if r.Rate > 0 {
		load = fmt.Sprintf("%s, %.0f/s asked", r.Shape, r.Rate)
	}
	if r.Shape == openloop.Jitter && r.Rate > 0 {
		load += fmt.Sprintf(", seed %d", r.Seed)
	}
	row("load", "%s, %d connections, %s", r.URL, r.Conns, load)
	row("requests", "%d of %d due answered in %.3f s, %.0f/s", r.Requests, r.Due, r.Seconds, r.Achieved)
	row("latency", "%s", latency(r.Latency))
	row("errors", "%s", failures(r.Errors))
	row("own lag", "p99 %v  max %v, up to %v of the p99 of the latency", micros(r.OwnLag.P99), micros(r.OwnLag.Max), micros(r.OwnLag.Share))
	if r.Rate > 0 {
		kept := "yes"
		if !r.KeptUp {
			kept = "NO: " + r.Reason
		}
		row("kept up", "%s", kept)
	}
	row("generator", "busy %.1f %% of the time, preempted %.1f %%, %.3f s of CPU", r.Busy*100, r.Preempted*100, r.CPU)
	if r.ServerCPU != nil {
		row("server", "%.3f s of CPU", *r.ServerCPU)
	}
	if o := r.Beside; o != nil {
		row("beside", "%d requests answered, %.0f/s", o.Requests, float64(o.Requests)/o.Seconds)
		row("", "%s", latency(o.Latency))
		row("", "errors: %s", failures(o.Errors))
	}
	return b.String()
}

func latency(l record.Latency) string {
	return fmt.Sprintf("p50 %v  p90 %v  p99 %v  p99.9 %v  max %v", micros(l.P50), micros(l.P90), micros(l.P99), micros(l.P999), micros(l.Max))
}

func micros(us float64) time.Duration {
	return time.Duration(us * 1e3).Round(100 * time.Nanosecond)
}

func failures(e record.Errors) string {
	if e == (record.Errors{}) {
		return "none"
	}
	var list []string
	for _, k := range []struct {
		name string
		n    int64
	}{{"status", e.Status}, {"connect", e.Connect}, {"read", e.Read}, {"write", e.Write}, {"timeout", e.Timeout}} {
		if k.n > 0 {
			list = append(list, fmt.Sprintf("%d %s", k.n, k.name))
		}
	}
	return strings.Join(list, ", ")
}
