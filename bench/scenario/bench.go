package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

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
	Name   string       // in the record, if other than that of the peer
	Args   []string     // after those of the peer
	CPUs   affinity.Set // none: those of the bench's server
	// Answers are the sizes of its answers in bytes, by route, which it is held to; nil: none.
	Answers map[string]int
}

func (s *Subject) cpus(c measure.CPUs) affinity.Set {
	if s.CPUs.Empty() {
		return c.Server
	}
	return s.CPUs
}

// name returns what the subject is called in the record.
func (s *Subject) name() string {
	if s.Name != "" {
		return s.Name
	}
	return s.Peer.Name
}

// With starts a subject, calls f, and ends it. A subject that closes does so when it is
// asked to; those that are not Canned always do.
func (b *Bench) With(ctx context.Context, s *Subject, closes bool, f func(*measure.Process) error) error {
	p, err := b.start(ctx, s, closes)
	if err != nil {
		return err
	}
	err = f(p)
	if stopped := p.Stop(); err == nil {
		err = stopped
	}
	return err
}

func (b *Bench) start(ctx context.Context, s *Subject, closes bool) (*measure.Process, error) {
	addrs, err := measure.FreeAddrs(2)
	if err != nil {
		return nil, err
	}
	addr, admin := addrs[0], addrs[1]
	dir := filepath.Join(b.Dir, "server")
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil { // nginx's workers are not root
		return nil, err
	}
	command, err := s.Command(s.Binary, peers.Options{Addr: addr, Admin: admin, Workers: s.cpus(b.CPUs).Len(), Users: b.Users, Dir: dir, Close: closes})
	if err != nil {
		return nil, err
	}
	p, err := measure.Start(ctx, measure.Config{
		Name: s.name(), Command: append(command, s.Args...), Addr: addr, CPUs: s.cpus(b.CPUs), Log: filepath.Join(b.Dir, "server.log"),
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
	err = b.With(ctx, s, sc.PerConnection > 0, func(p *measure.Process) error {
		if err := b.warm(ctx, sc, p); err != nil {
			return fmt.Errorf("warm: %w", err)
		}
		if sc.Kind == Allocations {
			samples, err = b.allocations(ctx, conns, p)
			return err
		}
		var one record.Sample
		switch sc.Kind {
		case Open:
			one, err = b.open(ctx, sc, conns, p)
		case Idle:
			one, err = b.idle(ctx, sc, p)
		default:
			one, err = b.closed(ctx, sc, conns, s, p)
		}
		samples = []record.Sample{one}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s, %d connections, %s: %w", sc.Name, conns, s.name(), err)
	}
	for i := range samples {
		samples[i].Scenario, samples[i].Conns, samples[i].Peer = sc.Name, conns, s.name()
	}
	return samples, ctx.Err()
}

// warm has the server answer what it will be measured with.
func (b *Bench) warm(ctx context.Context, sc *Scenario, p *measure.Process) error {
	requests := [][]byte{measure.Request(sc.Method, sc.Target, sc.Body)}
	if sc.Beside != "" {
		requests = append(requests, measure.Request("", sc.Beside, ""))
	}
	return send(ctx, p, slices.Repeat(requests, warmup/len(requests)), 8)
}

// send sends requests, all of which must be answered well.
func send(ctx context.Context, p *measure.Process, requests [][]byte, conns int) error {
	c, err := measure.Dial(p.Addr, conns)
	if err != nil {
		return err
	}
	defer c.Close()
	o, err := c.Send(ctx, requests, 0)
	if err == nil && o.Failed > 0 {
		err = fmt.Errorf("%d of %d requests failed", o.Failed, len(requests))
	}
	return err
}

// closed measures with wrk.
func (b *Bench) closed(ctx context.Context, sc *Scenario, conns int, of *Subject, p *measure.Process) (s record.Sample, err error) {
	w := measure.Wrk{
		CPUs: sc.load(b.CPUs), Conns: conns, Seconds: seconds(conns), URL: "http://" + p.Addr + sc.Target, Method: sc.Method, Body: sc.Body,
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
	if size := of.Answers[sc.route()]; size > 0 && l.Errors == (record.Errors{}) {
		if err := l.Answered(size); err != nil {
			return s, err
		}
	}
	s.Requests, s.Seconds = l.Requests, l.Seconds
	s.ServerCPU, s.GeneratorCPU = (after - before).Seconds(), l.CPU.Seconds()
	s.Latency = l.Latency
	if l.Errors != (record.Errors{}) {
		s.Errors = &l.Errors
	}
	return s, nil
}

// seconds is how long wrk runs. It opens its connections in that time, which a server with
// a goroutine and buffers for each pays for: that part must be small.
func seconds(conns int) int {
	if conns >= 1000 {
		return 2
	}
	return 1
}

// idle measures the memory of connections that wait.
func (b *Bench) idle(ctx context.Context, sc *Scenario, p *measure.Process) (s record.Sample, err error) {
	n, err := measure.Descriptors()
	if err != nil {
		return s, err
	}
	m, err := measure.Idle(ctx, p, measure.Request(sc.Method, sc.Target, sc.Body), n)
	s.OpenBefore, s.RSSBefore, s.Open, s.RSS = m.Few, m.RSSFew, m.Many, m.RSSMany
	return s, err
}
