package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pinion/bench/check"
	"pinion/bench/measure"
	"pinion/bench/peers"
	"pinion/bench/record"
	"pinion/bench/report/page"
	"pinion/bench/scenario"
)

// lab is a run while it goes on.
type lab struct {
	options
	scenario.Bench
	run      *record.Run
	subjects []scenario.Subject
	groups   []*group
	start    time.Time
	log      progress
}

// group is a scenario with a number of connections: what is compared with each other.
type group struct {
	scenario.Scenario
	conns    int
	subjects []scenario.Subject
	rounds   int           // done
	took     time.Duration // the last of them
}

func run(ctx context.Context, o options) error {
	l := &lab{options: o, start: time.Now(), log: progress{out: os.Stderr}}
	if err := l.names(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pinion-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a directory for temporary files
	// Workers of nginx drop root, and have to get at theirs.
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	l.Bench = scenario.Bench{Dir: dir, CPUs: o.cpus, Users: filepath.Join(dir, "users.json")}
	l.run = &record.Run{
		Started: time.Now().UTC().Truncate(time.Second), Command: "make bench-peers", Quick: o.quick,
		Host: measure.Describe(ctx, o.cpus), Revision: revision(ctx, o.root),
	}
	if o.quick {
		l.run.Command = "make bench-quick"
	}
	for _, step := range []func(context.Context) error{l.build, l.prove, l.plan, l.calibrate, l.generators, l.base, l.more} { // in this order
		if err = step(ctx); err != nil {
			break
		}
	}
	if len(l.run.Samples) == 0 {
		return err
	}
	if err != nil {
		l.run.Method = append(l.run.Method, fmt.Sprintf("The run did not get to its end: %v.", err))
	}
	l.run.Ended = time.Now().UTC().Truncate(time.Second)
	if o.out != "" {
		if written := l.run.Write(o.out); written != nil {
			return written
		}
	}
	if told := page.Summary(os.Stdout, l.run); told != nil {
		return told
	}
	l.log.say("%d measurements in %v", len(l.run.Samples), time.Since(l.start).Round(time.Second))
	return err
}

func revision(ctx context.Context, root string) string {
	out, err := exec.CommandContext(ctx, "git", "-C", root, "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// names checks those that the flags give.
func (l *lab) names() error {
	for _, name := range l.peers {
		if !slices.ContainsFunc(peers.All(), func(p peers.Peer) bool { return p.Name == name }) {
			return fmt.Errorf("-peers: there is no %q", name)
		}
	}
	all, err := scenario.All("")
	if err != nil {
		return err
	}
	for _, name := range l.scenarios {
		if !slices.ContainsFunc(all, func(s scenario.Scenario) bool { return s.Name == name }) {
			return fmt.Errorf("-scenarios: there is no %q", name)
		}
	}
	return nil
}

// build compiles everything that is measured, and what measures.
func (l *lab) build(ctx context.Context) error {
	l.log.say("building servers")
	// The product is always there, since the users that all answer are its own; and so is
	// fasthttp, whose limit decides on rates.
	all := slices.DeleteFunc(peers.All(), func(p peers.Peer) bool {
		return p.Name != "pinion" && p.Name != "fasthttp" && !l.wanted(p)
	})
	binaries, err := peers.Build(ctx, l.root, l.Dir, all)
	if err != nil {
		return err
	}
	l.Generator = filepath.Join(l.Dir, "generator")
	cmd := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(l.root, "bench"), "-o", l.Generator, "./generator")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the generator: %w: %s", err, out)
	}
	for _, p := range all {
		b := binaries[p.Name]
		l.subjects = append(l.subjects, scenario.Subject{Peer: p, Binary: b.Path})
		l.run.Peers = append(l.run.Peers, record.Peer{
			Name: p.Name, Version: b.Version, Setup: p.Setup, SHA256: b.SHA256, Language: p.Language,
		})
	}
	return nil
}

// wanted says whether a peer is measured in this run.
func (l *lab) wanted(p peers.Peer) bool {
	if len(l.peers) > 0 {
		return slices.Contains(l.peers, p.Name)
	}
	return !l.quick || slices.Contains([]string{"pinion", "engine", "fasthttp", "gnet", "net/http", "gin", "nginx", "floor"}, p.Name)
}

// prove checks that every server answers what it should.
func (l *lab) prove(ctx context.Context) error {
	for i := range l.subjects {
		s := &l.subjects[i]
		p, err := l.Start(ctx, s)
		if err != nil {
			return err
		}
		if s.Peer.Name == "pinion" {
			if err = peers.Fixture(ctx, p.Addr, l.Users); err == nil {
				l.Batch, err = scenario.Batch(l.Users)
			}
		}
		var sizes map[string]int
		if err == nil {
			sizes, err = check.Check(ctx, check.Config{Addr: p.Addr, Peer: &s.Peer, Users: l.Users, Batch: l.Batch, Seed: uint64(l.start.UnixNano())})
		}
		if stopped := p.Stop(); err == nil {
			err = stopped
		}
		if err != nil {
			return fmt.Errorf("%s is not measured with the others: %w", s.Peer.Name, err)
		}
		l.run.Peers[i].Answers = sizes
		l.log.say("%s answers as it should", s.Peer.Name)
	}
	return nil
}

// plan lists what is measured.
func (l *lab) plan(context.Context) error {
	all, err := scenario.All(l.Batch)
	if err != nil {
		return err
	}
	wanted := slices.DeleteFunc(slices.Clone(l.subjects), func(s scenario.Subject) bool { return !l.wanted(s.Peer) })
	for _, s := range all {
		if len(l.scenarios) > 0 && !slices.Contains(l.scenarios, s.Name) || len(l.scenarios) == 0 && l.quick && !s.Quick {
			continue
		}
		for _, conns := range s.Conns {
			if of := s.Subjects(wanted); len(of) > 0 {
				l.groups = append(l.groups, &group{Scenario: s, conns: conns, subjects: of})
			}
		}
		l.describe(s.Scenario)
	}
	l.run.Method = append(l.run.Method, fmt.Sprintf(
		"Every measurement takes a second, if not said otherwise, of a server that was started for it on CPU %v and has answered 1,000 requests; the generator has CPU %v.", l.CPUs.Server, l.CPUs.Load))
	if l.CPUs.All.Len() < 3 {
		l.run.Method = append(l.run.Method, "This host has too few CPUs to measure two loops as it should be done: the second loop shares its CPU with the generator.")
	}
	return nil
}

// describe notes a scenario in the record, once.
func (l *lab) describe(s record.Scenario) {
	i := slices.IndexFunc(l.run.Scenarios, func(r record.Scenario) bool { return r.Name == s.Name })
	if i < 0 {
		l.run.Scenarios = append(l.run.Scenarios, s)
		return
	}
	conns := append(slices.Clone(l.run.Scenarios[i].Conns), s.Conns...)
	slices.Sort(conns)
	l.run.Scenarios[i].Conns = slices.Compact(conns)
}
