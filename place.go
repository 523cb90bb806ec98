package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"pinion/affinity"
	"pinion/internal/config"
	"pinion/internal/topology"
)

// place is where the program runs: the machine, and the cells it is cut into.
type place struct {
	machine affinity.Topology
	readErr error // what of machine could not be read
	allowed affinity.Set
	cpus    affinity.Set // what -cpus comes to
	cells   []affinity.Cell
}

// newPlace plans the cells of this machine, without changing anything. Its
// errors are about what the user wrote; the place then has no cells, or is nil.
func newPlace(cfg *config.Config, log *slog.Logger) (*place, error) {
	p := new(place)
	var err error
	p.allowed, err = affinity.Allowed()
	if errors.Is(err, errors.ErrUnsupported) && cfg.CPUs.String() == (affinity.List{}).String() {
		return p.unpinned(cfg)
	}
	if err != nil {
		return nil, cfg.Wrong("cpus", err)
	}
	if p.machine, p.readErr = affinity.ReadTopology("/"); p.readErr != nil {
		log.Warn("some of the machine could not be read", "error", p.readErr)
	}
	if p.machine.Online.Empty() {
		p.machine = affinity.Topology{ // one NUMA node
			Possible: p.allowed, Online: p.allowed,
			Nodes: []affinity.Node{{CPUs: p.allowed}},
		}
	}
	for _, note := range p.machine.Notes {
		log.Debug("machine", "note", note)
	}
	p.cpus = cfg.CPUs.In(p.allowed)
	if err := p.machine.Check(p.cpus, p.allowed); err != nil {
		return p, cfg.Wrong("cpus", err)
	}
	if p.cells, err = p.machine.Plan(p.cpus, cfg.Cells); err != nil {
		return p, cfg.Wrong("cells", err)
	}
	return p, nil
}

// unpinned is a system whose processes have no CPU masks: one cell.
func (p *place) unpinned(cfg *config.Config) (*place, error) {
	if n, fixed := cfg.Cells.Count(); fixed && n > 1 {
		return nil, cfg.Wrong("cells", fmt.Errorf("more than one cell: %w", errors.ErrUnsupported))
	}
	p.cells = []affinity.Cell{{Share: 1, Reason: "this system has no CPU masks"}}
	return p, nil
}

// settle gives the process its CPUs and, if it is all there is, its memory, by
// starting it again with both, and sizes GOMAXPROCS after them and the cgroup's
// quota.
func (p *place) settle(log *slog.Logger) error {
	for i := range p.cells {
		if err := affinity.MemoryPolicy(p.cells[i].Memory); err != nil {
			log.Warn("memory comes from any NUMA node", "cell", i, "error", err)
			p.cells[i].Memory = affinity.Set{}
		}
	}
	where := affinity.Placement{CPUs: p.cpus}
	if len(p.cells) == 1 {
		where.Memory = p.cells[0].Memory
	}
	if !where.CPUs.Empty() {
		if err := affinity.Reexec(where); err != nil {
			return err
		}
	}
	if len(p.cells) == 1 {
		decide(where.CPUs, 1, log)
	}
	return nil
}

// decide sets GOMAXPROCS.
func decide(cpus affinity.Set, share float64, log *slog.Logger) {
	decision, err := affinity.Apply(cpus, share)
	if err != nil {
		log.Warn("a CPU limit could not be read", "error", err)
	}
	log.Info("cpus decided", "decision", decision)
}

// printTopology is the command of that name. It shows the machine also where the
// flags are wrong for it.
func printTopology(cfg *config.Config, stdout io.Writer, log *slog.Logger) error {
	p, planErr := newPlace(cfg, log)
	if p == nil {
		return planErr
	}
	report := topology.Report{
		Topology: p.machine, ReadErr: p.readErr, Allowed: p.allowed,
		CPUs: cfg.CPUs.String(), Cells: cfg.Cells.String(), Plan: p.cells, PlanErr: planErr,
	}
	write := report.WriteText
	if cfg.JSON {
		write = report.WriteJSON
	}
	if err := write(stdout); err != nil {
		return fmt.Errorf("print the topology: %w", err)
	}
	return planErr
}
