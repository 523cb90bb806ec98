package affinity

import (
	"fmt"
	"os"
)

// Cell is a part of the CPUs that is served by a process of its own.
type Cell struct {
	Index int // its place in the plan, from 0
	CPUs  Set // never empty

	// Nodes holds the NUMA nodes the CPUs are on, and Memory those its memory
	// should come from, for [Placement]. Memory is empty if there should be
	// no policy: the CPUs are on several nodes, or on the only one.
	Nodes, Memory Set

	// Share is the part of the cgroup's quota that the process may use: as
	// the CPUs are to those of all cells, but a whole CPU of quota at least
	// where there is one for each cell. All shares add up to 1.
	Share float64

	// GOMAXPROCS is what [Apply] will come to in the process, at least 1; as
	// many event loops are right.
	GOMAXPROCS int

	Reason string // one line: why these CPUs, why this GOMAXPROCS
}

// Plan divides cpus into cells, and says for each why. Nodes are whole nodes
// as far as cpus has them.
//
//   - auto: one cell for each node that cpus touches, but no more than the
//     cgroup quota has whole CPUs, and one at least. Nodes are then merged,
//     those nearest to each other first, and of these the smaller ones.
//   - off: one cell.
//   - a number: so many cells. Nodes are merged as for auto where there are
//     more of them, and divided where there are fewer: by L3 caches, then
//     cores, then CPUs, so that what shares a cache stays together.
//
// The cells are disjoint, none is empty, and together they are cpus. Those of
// lower nodes, then of lower CPUs, come first. The same input gives the same
// plan. Their GOMAXPROCS add up to no more than the larger of the number of
// cells and the quota, but for a GOMAXPROCS environment variable, which counts
// here as it does in [Decide].
//
// Plan takes cpus as given, see [Topology.Check]. The error is [ErrEmptySet]
// or a [*TooManyCellsError].
func (t *Topology) Plan(cpus Set, mode Cells) ([]Cell, error) {
	if cpus.Empty() {
		return nil, ErrEmptySet
	}
	if mode.n > cpus.Len() {
		return nil, &TooManyCellsError{Cells: mode.n, CPUs: cpus.Len()}
	}
	parts := t.parts(cpus, mode)

	env := os.Getenv("GOMAXPROCS")
	sizes := make([]int, len(parts))
	for i, p := range parts {
		sizes[i] = p.cpus.Len()
	}
	shares := shares(sizes, t.Quota)
	cells := make([]Cell, len(parts))
	for i, p := range parts {
		d := Decision{CPUs: p.cpus, Quota: t.Quota, QuotaFrom: t.QuotaFrom, Share: shares[i]}
		d.decide(env)
		memory, from := t.memory(p.nodes)
		cells[i] = Cell{
			Index:      i,
			CPUs:       p.cpus,
			Nodes:      p.nodes,
			Memory:     memory,
			Share:      d.Share,
			GOMAXPROCS: d.GOMAXPROCS,
			Reason:     p.why + from + "; GOMAXPROCS: " + d.Reason,
		}
	}
	return cells, nil
}

// part is a cell in the making.
type part struct {
	cpus, nodes Set
	why         string
}

// parts divides cpus, of which there are enough.
func (t *Topology) parts(cpus Set, mode Cells) []part {
	nodes := t.nodesOf(cpus)
	n, limit := mode.n, fmt.Sprintf("%v cells asked for", mode)
	if mode.n == 0 {
		n, limit = len(nodes), "one cell for each node"
		if t.Quota > 0 && t.Quota < float64(n) {
			n = max(1, int(t.Quota))
			limit = fmt.Sprintf("the cgroup quota of %.4g CPUs is enough for %d", t.Quota, n)
		}
	}
	if mode.off {
		limit = "cells are off"
	}
	if n > len(nodes) {
		return t.divide(nodes, n)
	}
	parts := t.merge(nodes, n)
	for i := range parts {
		if p := &parts[i]; p.nodes.Len() > 1 {
			p.why = fmt.Sprintf("nodes %v together: %s", p.nodes, limit)
		}
	}
	return parts
}

// shares divides a quota in proportion to sizes. A process has at least one
// running thread (GOMAXPROCS 1) however little quota it has, so those with
// less than a CPU of it are given one, at the cost of the others: otherwise
// the threads of all would be more than the quota, and be stopped together.
func shares(sizes []int, quota float64) []float64 {
	shares := make([]float64, len(sizes))
	if quota > 0 && quota < float64(len(sizes)) {
		for i := range shares {
			shares[i] = 1 / float64(len(sizes))
		}
		return shares
	}
	// What is left for those not yet lifted to one CPU. Lifting one leaves
	// less for the others, of which another may then have to be lifted.
	rest, total := quota, 0
	for _, size := range sizes {
		total += size
	}
	for again := quota > 0; again; {
		again = false
		for i, size := range sizes {
			if shares[i] == 0 && rest*float64(size) < float64(total) {
				shares[i] = 1 / quota
				rest, total, again = rest-1, total-size, true
			}
		}
	}
	for i, size := range sizes {
		if shares[i] == 0 {
			shares[i] = float64(size) / float64(total)
			if quota > 0 {
				shares[i] *= rest / quota
			}
		}
	}
	return shares
}
