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

// steeringByNode gives each cell its own CPUs. Those of a node that no cell has are
// for all cells on that node: a packet that such a CPU took is near them all the same.
func steeringByNode(p *place, lns [][]net.Listener) (targets affinity.Steering) {
	var taken affinity.Set
	first := make([]int, len(p.cells)+1) // listener of each cell, and the end
	for i, cell := range p.cells {
		first[i+1] = first[i] + len(lns[i])
		targets = append(targets, affinity.Target{CPUs: cell.CPUs, First: first[i], Count: len(lns[i])})
		taken = taken.Union(cell.CPUs)
	}
	for _, node := range p.machine.Nodes {
		free := node.CPUs.Difference(taken)
		lo, hi := cellsOn(p.cells, node.ID)
		if free.Empty() || lo == hi {
			continue
		}
		targets = append(targets, affinity.Target{CPUs: free, First: first[lo], Count: first[hi] - first[lo]})
	}
	return targets
}

// cellsOn returns the range of the cells that have CPUs of a node; a plan has them
// side by side.
func cellsOn(cells []affinity.Cell, node int) (lo, hi int) {
	for i, cell := range cells {
		if !cell.Nodes.Contains(node) {
			continue
		}
		if lo == hi {
			lo = i
		}
		hi = i + 1
	}
	return lo, hi
}

func tcp(ln net.Listener) bool {
	_, ok := ln.(*net.TCPListener)
	return ok
}
