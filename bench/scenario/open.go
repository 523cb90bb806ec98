package scenario

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"pinion/bench/generator/openloop"
	"pinion/bench/measure"
	"pinion/bench/record"
)

// Generate runs the open-loop generator on the CPUs for the load.
func (b *Bench) Generate(ctx context.Context, p *measure.Process, args ...string) (*openloop.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	args = append([]string{"-c", b.CPUs.Load.String(), b.Generator, "-json", "-pid", strconv.Itoa(p.PID())}, args...)
	cmd := exec.CommandContext(ctx, "taskset", args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("generator: %w: %s", cmp.Or(ctx.Err(), err), bytes.TrimSpace(said.Bytes()))
	}
	var r openloop.Result
	if err := json.Unmarshal(out, &r); err != nil {
		return nil, fmt.Errorf("generator: %w: %s", err, out)
	}
	if r.ServerCPU == nil {
		return nil, fmt.Errorf("generator: no CPU time of %s in %s", p.Name, out)
	}
	return &r, nil
}

// open measures with the open-loop generator.
func (b *Bench) open(ctx context.Context, sc *Scenario, conns int, p *measure.Process) (s record.Sample, err error) {
	rate := sc.Rate
	if sc.Share > 0 {
		rate = sc.Share * b.Limit
	}
	args := []string{
		"-conns", strconv.Itoa(conns), "-rate", strconv.FormatFloat(rate, 'f', 0, 64),
		"-shape", sc.Shape, "-duration", sc.duration().String(),
	}
	if sc.Beside != "" {
		args = append(args, "-beside", "http://"+p.Addr+sc.Beside, "-beside-conns", strconv.Itoa(sc.BesideConns))
	}
	r, err := b.Generate(ctx, p, append(args, "http://"+p.Addr+sc.Target)...)
	if err != nil {
		return s, err
	}
	if s.RSS, err = p.RSS(); err != nil {
		return s, err
	}
	s.Requests, s.Seconds, s.ServerCPU = r.Requests, r.Seconds, *r.ServerCPU
	// The generator polls while it waits for something near: its CPU time says little.
	s.GeneratorCPU = r.Busy * r.Seconds
	s.Latency, s.Rate, s.OwnLag, s.Behind = &r.Latency, r.Rate, r.OwnLag.P99, !r.KeptUp
	errors := r.Errors
	if r.Beside != nil {
		s.Beside = r.Beside.Requests
		errors = sum(errors, r.Beside.Errors)
	}
	if errors != (record.Errors{}) {
		s.Errors = &errors
	}
	return s, nil
}

func sum(a, b record.Errors) record.Errors {
	return record.Errors{
		Status: a.Status + b.Status, Connect: a.Connect + b.Connect,
		Read: a.Read + b.Read, Write: a.Write + b.Write, Timeout: a.Timeout + b.Timeout,
	}
}
