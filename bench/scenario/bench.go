package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"pinion/affinity"
	"pinion/bench/measure"
	"pinion/bench/peers"
	"pinion/bench/record"
)

// warmup is how many requests a server answers before it is measured.
const warmup = 1000

// Bench measures. It is for one goroutine: a host has one set of CPUs.
type Bench struct {
	Dir       string       // for logs, configuration and what else servers write
	CPUs      measure.CPUs // those of a peer with a Span come from all of them
	Generator string       // path of the open-loop generator
	Users     string       // path of the fixture
	Batch     string       // target of a request for 20 users of the fixture
	// Limit is what fasthttp answers at most, in requests a second; for Scenario.Share.
	Limit float64
}

// Subject is a peer and the program that is measured as it.
type Subject struct {
	peers.Peer
	Binary string
	Name   string   // in the record, if other than that of the peer
	Args   []string // after those of the peer
	CPUs   int      // 0: those of the bench's server
}

// name returns what the subject is called in the record.
func (s *Subject) name() string {
	if s.Name != "" {
		return s.Name
	}
	return s.Peer.Name
}

// Start starts a subject on its CPUs.
func (b *Bench) Start(ctx context.Context, s *Subject) (*measure.Process, error) {
	return b.start(ctx, s, false)
}

// start starts a subject, which has to close connections when it is asked to.
func (b *Bench) start(ctx context.Context, s *Subject, closes bool) (*measure.Process, error) {
	addr, err := measure.FreeAddr()
	if err != nil {
		return nil, err
	}
	admin, err := measure.FreeAddr()
	if err != nil {
		return nil, err
	}
	cpus := b.CPUs.Server
	if s.CPUs > 0 {
		cpus = affinity.SetOf(slices.Collect(b.CPUs.All.All())[:s.CPUs]...)
	}
	dir := filepath.Join(b.Dir, "server")
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil { // nginx's workers are not root
		return nil, err
	}
	command, err := s.Command(s.Binary, peers.Options{Addr: addr, Admin: admin, Workers: cpus.Len(), Users: b.Users, Dir: dir, Close: closes})
	if err != nil {
		return nil, err
	}
	p, err := measure.Start(ctx, measure.Config{
		Name: s.name(), Command: append(command, s.Args...), Addr: addr, CPUs: cpus, Log: filepath.Join(b.Dir, "server.log"),
	})
	if err != nil {
		return nil, err
	}
	p.Admin = admin
	return p, nil
}

// Measure starts a subject, measures it under the scenario, and ends it. Allocations are
// a sample for each route; everything else is one sample.
func (b *Bench) Measure(ctx context.Context, sc *Scenario, conns int, s *Subject) (samples []record.Sample, err error) {
	p, err := b.start(ctx, s, sc.PerConnection > 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if err := b.warm(sc, p); err != nil {
		return nil, fmt.Errorf("warm %s: %w", p.Name, err)
	}
	var sample record.Sample
	switch sc.Kind {
	case Closed:
		sample, err = b.closed(ctx, sc, conns, p)
	case Open:
		sample, err = b.open(ctx, sc, conns, p)
	case Idle:
		sample, err = b.idle(sc, p)
	case Allocations:
		samples, err = b.allocations(ctx, conns, p)
	}
	if err != nil {
		return nil, fmt.Errorf("%s, %d connections, %s: %w", sc.Name, conns, p.Name, err)
	}
	if samples == nil {
		samples = []record.Sample{sample}
	}
	for i := range samples {
		samples[i].Scenario, samples[i].Conns, samples[i].Peer = sc.Name, conns, p.Name
	}
	return samples, ctx.Err()
}

// warm has the server answer what it will be measured with.
func (b *Bench) warm(sc *Scenario, p *measure.Process) error {
	requests := [][]byte{measure.Request(sc.Method, sc.Target, sc.Body)}
	if sc.Beside != "" {
		requests = append(requests, measure.Request("", sc.Beside, ""))
	}
	return send(p, slices.Repeat(requests, warmup/len(requests)), 8)
}

// send sends requests, all of which must be answered well.
func send(p *measure.Process, requests [][]byte, conns int) error {
	c, err := measure.Dial(p.Addr, conns)
	if err != nil {
		return err
	}
	defer c.Close()
	o, err := c.Send(requests, 0)
	if err == nil && o.Failed > 0 {
		err = fmt.Errorf("%d of %d requests failed", o.Failed, len(requests))
	}
	return err
}

// closed measures with wrk.
func (b *Bench) closed(ctx context.Context, sc *Scenario, conns int, p *measure.Process) (s record.Sample, err error) {
	w := measure.Wrk{
		CPUs: b.CPUs.Load, Conns: conns, Seconds: 1, URL: "http://" + p.Addr + sc.Target, Method: sc.Method, Body: sc.Body,
		Pipeline: sc.Pipeline, PerConnection: sc.PerConnection,
	}
	before, err := p.CPU()
	if err != nil {
		return s, err
	}
	l, err := w.Run(ctx, b.Dir)
	if err != nil {
		return s, err
	}
	after, err := p.CPU()
	if err != nil {
		return s, err
	}
	if s.RSS, err = p.RSS(); err != nil {
		return s, err
	}
	s.Requests, s.Seconds = l.Requests, l.Seconds
	s.ServerCPU, s.GeneratorCPU = (after - before).Seconds(), l.CPU.Seconds()
	s.Latency = &l.Latency
	if l.Errors != (record.Errors{}) {
		s.Errors = &l.Errors
	}
	return s, nil
}

// idle measures the memory of connections that wait.
func (b *Bench) idle(sc *Scenario, p *measure.Process) (s record.Sample, err error) {
	if s.Open, err = measure.Descriptors(); err != nil {
		return s, err
	}
	s.RSSBefore, s.RSS, err = measure.Idle(p, measure.Request(sc.Method, sc.Target, sc.Body), s.Open)
	return s, err
}

// Subjects returns what is measured under the scenario, of those that are there.
func (sc *Scenario) Subjects(all []Subject) []Subject {
	var of []Subject
	for _, s := range all {
		if sc.Span == nil {
			if s.Can(sc.Name) && (sc.Peers == nil || slices.Contains(sc.Peers, s.Peer.Name)) {
				of = append(of, s)
			}
			continue
		}
		if s.Peer.Name != "engine" {
			continue
		}
		for name, n := range sc.Span {
			s.Name, s.CPUs, s.Args = name, n, []string{"-loops", strconv.Itoa(n)}
			of = append(of, s)
		}
		slices.SortFunc(of, func(a, b Subject) int { return a.CPUs - b.CPUs })
	}
	return of
}

// duration returns how long a measurement of the open loop takes.
func (sc *Scenario) duration() time.Duration {
	if sc.Duration > 0 {
		return sc.Duration
	}
	return time.Second
}
