package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"pinion/bench/check"
	"pinion/bench/measure"
	"pinion/bench/peers"
	"pinion/bench/record"
	"pinion/bench/scenario"
)

// question is a scenario and which of a tree's servers it is asked of.
type question struct {
	scenario.Scenario
	of func(*side) *scenario.Subject
}

// questions returns what is compared.
func questions(batch string) ([]question, error) {
	product := func(s *side) *scenario.Subject { return &s.product }
	engine := func(s *side) *scenario.Subject { return &s.engine }
	var all []question
	scenarios, err := scenario.All(batch)
	if err != nil {
		return nil, err
	}
	for _, s := range scenarios {
		if !s.Quick {
			continue // has other numbers of connections, or is not asked here
		}
		switch s.Name {
		case "ping", "users":
			all = append(all, question{s, product})
		case "sleep":
			all = append(all, question{s, engine})
		}
	}
	return all, nil
}

func run(ctx context.Context, o options) error {
	root, err := filepath.Abs(o.root)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pinion-compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a directory for temporary files
	tree := filepath.Join(dir, "ref")
	remove, err := checkout(ctx, root, o.ref, tree)
	if err != nil {
		return err
	}
	defer remove()
	fmt.Fprintln(os.Stderr, "building both")
	before, err := build(ctx, "ref", filepath.Join(root, "bench"), tree, dir)
	if err != nil {
		return err
	}
	after, err := build(ctx, "this", filepath.Join(root, "bench"), root, dir)
	if err != nil {
		return err
	}
	b := &scenario.Bench{Dir: dir, CPUs: o.cpus, Users: filepath.Join(dir, "users.json")}
	if err := prove(ctx, b, before, after); err != nil {
		return err
	}
	asked, err := questions(b.Batch)
	if err != nil {
		return err
	}
	asked = slices.DeleteFunc(asked, func(q question) bool { return q.of(before).Binary == "" })
	outcomes := make([]outcome, len(asked))
	for i, q := range asked {
		outcomes[i].Scenario = q.Scenario
	}
	done := 0
	for ; done < o.pairs && err == nil; done++ {
		for i, q := range asked {
			if err = outcomes[i].add(ctx, b, q, before, after, done); err != nil {
				break
			}
		}
		if err == nil {
			fmt.Fprintf(os.Stderr, "pair %d of %d\n", done+1, o.pairs)
		}
	}
	if ctx.Err() != nil {
		err = errInterrupted
	}
	// What was measured is not lost by what failed later.
	table(os.Stdout, o.ref, outcomes)
	return err
}

// errInterrupted is what ends a comparison that somebody called off.
var errInterrupted = errors.New("interrupted")

// prove has both sides answer, and says where one does not answer as this tree's servers
// should: then the work that is compared is not the same. It also makes the fixture.
func prove(ctx context.Context, b *scenario.Bench, before, after *side) error {
	for _, s := range []*side{after, before} {
		for _, of := range []*scenario.Subject{&s.product, &s.engine} {
			if of.Binary == "" {
				continue
			}
			var wrong error
			err := b.With(ctx, of, false, func(p *measure.Process) (err error) {
				if b.Batch == "" {
					if err = peers.Fixture(ctx, p.Addr, b.Users); err == nil {
						b.Batch, err = scenario.Batch(b.Users)
					}
					if err != nil {
						return err
					}
				}
				of.Answers, wrong = check.Check(ctx, check.Config{Addr: p.Addr, Peer: &of.Peer, Users: b.Users, Batch: b.Batch, Seed: 1})
				return nil
			})
			switch {
			case ctx.Err() != nil:
				return errInterrupted
			case err != nil:
				return err
			case wrong != nil && s == after:
				return wrong
			case wrong != nil:
				fmt.Fprintf(os.Stderr, "NOTE: not the same work: ref does not answer as this tree should: %v\n", wrong)
			}
		}
	}
	return nil
}

// add measures a pair. Which of the two comes first changes each time.
func (out *outcome) add(ctx context.Context, b *scenario.Bench, q question, before, after *side, pair int) error {
	order := []*side{before, after}
	if pair%2 == 1 {
		order = []*side{after, before}
	}
	micros := map[*side]float64{}
	for _, s := range order {
		samples, err := b.Measure(ctx, &q.Scenario, q.Conns[0], q.of(s))
		if err != nil {
			return err
		}
		if samples[0].Errors != nil {
			return fmt.Errorf("%s, %s: errors: %+v", q.Name, s.name, *samples[0].Errors)
		}
		micros[s] = samples[0].Micros()
	}
	out.before = append(out.before, micros[before])
	out.after = append(out.after, micros[after])
	return nil
}

// outcome is what the pairs of a scenario showed, in microseconds a request.
type outcome struct {
	scenario.Scenario
	before, after []float64
}

// ratios returns those within each pair.
func (out *outcome) ratios() []float64 {
	r := make([]float64, len(out.before))
	for i := range r {
		r[i] = out.after[i] / out.before[i]
	}
	return r
}

// medians returns those of both sides.
func (out *outcome) medians() (before, after float64) {
	return record.SpreadOf(out.before).Median, record.SpreadOf(out.after).Median
}
