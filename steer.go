package main

import (
	"log/slog"
	"net"
	"syscall"

	"pinion/affinity"
	"pinion/internal/config"
	"pinion/internal/stats"
)

// How the listener of a new connection is chosen, as listener_steering says it.
const (
	byNode = "node"
	byCPU  = "cpu"
	byHash = "hash"
)

// steer makes the kernel choose among the listeners of each cell as -steer says.
// Where it cannot, the kernel's hash goes on choosing, and the log and the metrics
// say so.
func steer(how string, p *place, lns [][]net.Listener, reg *stats.Registry, log *slog.Logger) {
	by, targets := steering(how, p, lns)
	if len(targets) > 0 {
		ln, ok := lns[0][0].(syscall.Conn)
		if !ok || !tcp(lns[0][0]) {
			by = byHash // there is one listener, for all
		} else if err := targets.Attach(ln); err != nil {
			log.Warn("connections are spread by the kernel's hash", "error", err)
			by = byHash
		}
	}
	log.Info("connections are spread", "by", by)
	reg.Gauge("listener_steering",
		"Always 1; by says what picks the loop of a new connection: the NUMA node or the CPU of its first packet, or a hash.", "by").
		Func(func() float64 { return 1 }, by)
}

// steering says which CPU's connections belong to which listener, counted over
// all cells in their order.
func steering(how string, p *place, lns [][]net.Listener) (by string, targets affinity.Steering) {
	switch {
	case how == config.SteerCPU:
		by, targets = byCPU, steeringByCPU(p.cells, lns)
	case how == config.SteerAuto && len(p.cells) > 1:
		by, targets = byNode, steeringByNode(p, lns)
	}
	if len(targets) == 0 {
		return byHash, nil
	}
	return by, targets
}

// steeringByCPU gives the CPUs of each cell to its loops in turn.
func steeringByCPU(cells []affinity.Cell, lns [][]net.Listener) (targets affinity.Steering) {
	first := 0
	for i, cell := range cells {
		loops := make([]affinity.Set, len(lns[i]))
		n := 0
		for cpu := range cell.CPUs.All() {
			loops[n%len(loops)] = loops[n%len(loops)].Union(affinity.SetOf(cpu))
			n++
		}
		for j, cpus := range loops {
			if !cpus.Empty() {
				targets = append(targets, affinity.Target{CPUs: cpus, First: first + j, Count: 1})
			}
		}
		first += len(loops)
	}
	return targets
}

// steeringByNode gives each cell its own CPUs, and those of its nodes that no cell
// has: a packet that another process's CPU took is near it all the same.
func steeringByNode(p *place, lns [][]net.Listener) (targets affinity.Steering) {
	var free affinity.Set
	for _, node := range p.machine.Nodes {
		free = free.Union(node.CPUs)
	}
	for _, cell := range p.cells {
		free = free.Difference(cell.CPUs)
	}
	first := 0
	for i, cell := range p.cells {
		cpus := cell.CPUs
		for _, node := range p.machine.Nodes {
			if cell.Nodes.Contains(node.ID) {
				cpus = cpus.Union(node.CPUs.Intersect(free))
				free = free.Difference(node.CPUs)
			}
		}
		targets = append(targets, affinity.Target{CPUs: cpus, First: first, Count: len(lns[i])})
		first += len(lns[i])
	}
	return targets
}

func tcp(ln net.Listener) bool {
	_, ok := ln.(*net.TCPListener)
	return ok
}
