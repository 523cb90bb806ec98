package main

import (
	"context"
	"errors"
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
	out      output
	limits   []float64 // of fasthttp, each time they were looked for
}

// seed is of all that is left to chance.
func (l *lab) seed() uint64 { return uint64(l.start.UnixNano()) }

// group is a scenario with a number of connections: what is compared with each other.
type group struct {
	scenario.Scenario
	conns    int
	subjects []scenario.Subject
	rounds   int           // done
	took     time.Duration // the last of them
}

// errInterrupted is what ends a run that somebody called off, whatever else failed by that.
var errInterrupted = errors.New("interrupted")

// errNothing is that of a choice which leaves nothing to measure.
var errNothing = errors.New("no server that was chosen is measured under a scenario that was chosen")

func run(ctx context.Context, o options) error {
	l := &lab{options: o, start: time.Now(), log: progress{out: os.Stderr}, out: output{o.out}}
	if err := tools("wrk", "taskset", "gcc"); err != nil {
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
		Started: time.Now().UTC().Truncate(time.Second), Command: o.command(), Quick: o.quick,
		Host: measure.Describe(ctx, o.cpus), Revision: revision(ctx, o.root),
		Partial: "It has not got to its end.",
	}
	if err := l.out.keep(l.run); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{l.build, l.prove, l.plan, l.calibrate, l.generators, l.base, l.more} { // in this order
		if err = step(ctx); err != nil {
			break
		}
	}
	if ctx.Err() != nil {
		err = errInterrupted
	}
	return l.end(err)
}

// end writes the data and tells what there is. err is what ended the run before its time.
func (l *lab) end(err error) error {
	if len(l.run.Samples) == 0 {
		l.out.drop()
		return err
	}
	l.run.Ended = time.Now().UTC().Truncate(time.Second)
	l.rates()
	var written error
	if err == nil {
		l.run.Partial = l.restricted()
		written = l.out.finish(l.run)
	} else {
		l.run.Partial = fmt.Sprintf("It did not get to its end: %v.", err)
		written = l.out.keep(l.run)
	}
	told := page.Summary(os.Stdout, l.run)
	l.log.say("%d measurements in %v", len(l.run.Samples), time.Since(l.start).Round(time.Second))
	if err != nil && l.out.path != "" && written == nil {
		l.log.say("%s is as it was; what was measured is in %s", l.out.path, l.out.partial())
	}
	return errors.Join(err, written, told)
}

// restricted says what flags kept the run from being a whole one.
func (l *lab) restricted() string {
	var of []string
	if len(l.peers) > 0 {
		of = append(of, "servers "+strings.Join(l.peers, ", "))
	}
	if len(l.scenarios) > 0 {
		of = append(of, "scenarios "+strings.Join(l.scenarios, ", "))
	}
	if of == nil {
		return ""
	}
	return "Only a part was measured: " + strings.Join(of, "; ") + "."
}

// tools checks that programs are there, before anything is built for nothing.
func tools(names ...string) error {
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%w; make deps installs it", err)
		}
	}
	return nil
}

func revision(ctx context.Context, root string) string {
	out, err := exec.CommandContext(ctx, "git", "-C", root, "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
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
	for _, name := range []string{"generator", "stall"} {
		cmd := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(l.root, "bench"), "-o", filepath.Join(l.Dir, name), "./"+name)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", name, err, out)
		}
	}
	l.Generator = filepath.Join(l.Dir, "generator")
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
	return !l.quick || slices.Contains([]string{"pinion", "engine", "fasthttp", "fasthttp+fragments", "gnet", "net/http", "gin", "nginx", "floor"}, p.Name)
}

// prove checks that every server answers what it should.
func (l *lab) prove(ctx context.Context) error {
	for i := range l.subjects {
		s := &l.subjects[i]
		config := check.Config{Peer: &s.Peer, Users: l.Users, Seed: l.seed()}
		var sizes map[string]int
		err := l.With(ctx, s, false, func(p *measure.Process) (err error) {
			if s.Peer.Name == "pinion" {
				if err = peers.Fixture(ctx, p.Addr, l.Users); err == nil {
					l.Batch, err = scenario.Batch(l.Users)
				}
			}
			if err == nil {
				config.Addr, config.Batch = p.Addr, l.Batch
				sizes, err = check.Check(ctx, config)
			}
			return err
		})
		if err == nil && s.Canned { // it does not close by itself, and is measured that way too
			err = l.With(ctx, s, true, func(p *measure.Process) error {
				config.Addr, config.Closes = p.Addr, true
				_, err := check.Check(ctx, config)
				return err
			})
		}
		if err != nil {
			return fmt.Errorf("%s is not measured with the others: %w", s.Peer.Name, err)
		}
		s.Answers = sizes
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
	shares := false
	for _, s := range all {
		if len(l.scenarios) > 0 && !slices.Contains(l.scenarios, s.Name) || len(l.scenarios) == 0 && l.quick && !s.Quick {
			continue
		}
		for _, conns := range s.Conns {
			if of := s.Subjects(wanted, l.CPUs); len(of) > 0 {
				l.groups = append(l.groups, &group{Scenario: s, conns: conns, subjects: of})
			}
		}
		l.describe(s.Scenario)
		shares = shares || s.Shares(l.CPUs)
	}
	if len(l.groups) == 0 {
		return errNothing
	}
	l.run.Method = append(l.run.Method, fmt.Sprintf(
		"Every measurement takes a second, if not said otherwise, of a server that was started for it on CPU %v and has answered 1,000 requests; the generator has CPU %v.", l.CPUs.Server, l.CPUs.Load))
	l.run.Method = append(l.run.Method, fmt.Sprintf("The order of the servers is shuffled in each round, with seed %d.", l.seed()))
	if shares {
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
