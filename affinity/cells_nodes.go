package affinity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// nodesOf returns what each node has of cpus, nodes without any left out. Of
// several nodes that claim a CPU the first gets it. CPUs that no node claims
// go with the first node.
func (t *Topology) nodesOf(cpus Set) []part {
	var parts []part
	rest := cpus
	for _, n := range t.Nodes {
		own := n.CPUs.Intersect(rest)
		if own.Empty() {
			continue
		}
		rest = rest.Difference(own)
		parts = append(parts, part{
			cpus:  own,
			nodes: SetOf(n.ID),
			why:   fmt.Sprintf("the CPUs on node %d", n.ID),
		})
	}
	switch {
	case len(parts) == 0:
		return []part{{cpus: rest, why: "CPUs of which no node is known"}}
	case !rest.Empty():
		first := &parts[0]
		first.cpus = first.cpus.Union(rest)
		first.why += fmt.Sprintf(" and %v, whose node is not known", rest)
	}
	return parts
}

// merge makes n of parts. Two become one until it is so: those nearest to
// each other, by the most distant pair of their nodes; of these the ones
// that are smallest together, so that equal nodes make equal cells; of these
// the first.
func (t *Topology) merge(parts []part, n int) []part {
	distances := make([][]int, len(parts))
	for i, p := range parts {
		distances[i] = make([]int, len(parts))
		for j, q := range parts[:i] {
			d := t.distance(p.nodes, q.nodes)
			distances[i][j], distances[j][i] = d, d
		}
	}
	for len(parts) > n {
		bestI, bestJ, best, size := 0, 0, math.MaxInt, 0
		for j := range parts {
			for i := range j {
				both := parts[i].cpus.Len() + parts[j].cpus.Len()
				if c := cmp.Compare(distances[i][j], best); c < 0 || c == 0 && both < size {
					bestI, bestJ, best, size = i, j, distances[i][j], both
				}
			}
		}
		p, q := &parts[bestI], parts[bestJ]
		p.cpus, p.nodes = p.cpus.Union(q.cpus), p.nodes.Union(q.nodes)
		parts = slices.Delete(parts, bestJ, bestJ+1)
		for k := range distances {
			d := max(distances[bestI][k], distances[bestJ][k])
			distances[bestI][k], distances[k][bestI] = d, d
		}
		distances = slices.Delete(distances, bestJ, bestJ+1)
		for k := range distances {
			distances[k] = slices.Delete(distances[k], bestJ, bestJ+1)
		}
	}
	return parts
}

// distance returns the largest between a node of a and one of b, either way.
// Firmware is known to give one way only.
func (t *Topology) distance(a, b Set) int {
	longest := 0
	for i := range a.All() {
		for j := range b.All() {
			longest = max(longest, t.nodeDistance(i, j), t.nodeDistance(j, i))
		}
	}
	return longest
}

func (t *Topology) nodeDistance(from, to int) int {
	for _, n := range t.Nodes {
		if n.ID != from {
			continue
		}
		for _, d := range n.Distances {
			if d.Node == to && d.Distance > 0 {
				return d.Distance
			}
		}
	}
	return slitRemote
}

// memory returns the node that a cell on nodes should have its memory from:
// its own, or the nearest that has any which the cgroup allows. from is what
// to say about another than its own.
func (t *Topology) memory(nodes Set) (memory Set, from string) {
	own, ok := nodes.Min()
	if !ok || nodes.Len() > 1 || len(t.Nodes) < 2 {
		return Set{}, ""
	}
	best, nearest := -1, math.MaxInt
	for _, n := range t.Nodes {
		if n.MemoryBytes == 0 || !t.MemSet.Empty() && !t.MemSet.Contains(n.ID) {
			continue
		}
		d := t.nodeDistance(own, n.ID)
		if n.ID == own {
			d = 0
		}
		if d < nearest {
			best, nearest = n.ID, d
		}
	}
	switch {
	case best < 0:
		return Set{}, ", no memory policy: no node is known to have memory for it"
	case best != own:
		from = fmt.Sprintf(", memory from node %d, the nearest that has some for it", best)
	}
	return SetOf(best), from
}
