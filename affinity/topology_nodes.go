package affinity

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// What the kernel assumes where firmware tells no distances
// (LOCAL_DISTANCE and REMOTE_DISTANCE in include/linux/topology.h).
const (
	slitLocal  = 10
	slitRemote = 20
)

func (r *treeReader) nodes(online Set) []Node {
	dirs := r.numbered(sysNode, "node")
	ids, ok := r.set(sysNode + "/online")
	switch {
	case dirs.Empty():
		return r.oneNode(online)
	case !ok || ids.Empty():
		r.note("%s/online tells nothing: every node there is taken as online", sysNode)
		ids = dirs
	}
	r.noteStray(ids, dirs)

	var nodes []Node
	for id := range ids.Intersect(dirs).All() {
		n := r.node(id, ids, online)
		n.Distances = slices.DeleteFunc(n.Distances, func(d Distance) bool { return !dirs.Contains(d.Node) })
		nodes = append(nodes, n)
	}
	if len(nodes) == 0 {
		return r.oneNode(online)
	}
	r.share(nodes, online)
	return nodes
}

// oneNode is a machine whose kernel does not know NUMA.
func (r *treeReader) oneNode(online Set) []Node {
	r.note("no NUMA node in %s: all CPUs are taken as of one node", sysNode)
	return []Node{{
		CPUs:        online,
		MemoryBytes: r.memory("/proc/meminfo"),
		Distances:   []Distance{{0, slitLocal}},
	}}
}

// noteStray tells of nodes that are in one place and not in the other.
func (r *treeReader) noteStray(ids, dirs Set) {
	for id := range dirs.Difference(ids).All() {
		file := nodeFile(id, "cpulist")
		if cpus, ok := r.set(file); ok && !cpus.Empty() {
			r.note("node %d is offline: CPUs %v in %s are stale", id, cpus, file)
		}
	}
	if lost := ids.Difference(dirs); !lost.Empty() {
		r.note("nodes %v are online and have no directory: they are left out", lost)
	}
}

// node reads one of the nodes ids.
func (r *treeReader) node(id int, ids, online Set) Node {
	file := nodeFile(id, "cpulist")
	cpus, _ := r.set(file)
	if off := cpus.Difference(online); !off.Empty() {
		r.note("CPUs %v in %s are offline: they are left out", off, file)
	}
	return Node{
		ID:          id,
		CPUs:        cpus.Intersect(online),
		MemoryBytes: r.memory(nodeFile(id, "meminfo")),
		Distances:   r.distances(id, ids),
	}
}

// memory returns the bytes that the MemTotal line of a meminfo file tells:
//
//	MemTotal:       32768 kB
//	Node 0 MemTotal:       32768 kB
func (r *treeReader) memory(file string) uint64 {
	text, ok := r.text(file)
	if !ok {
		r.note("no %s: the memory of the node is taken as none", file)
		return 0
	}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		i := slices.Index(fields, "MemTotal:")
		if i < 0 {
			continue
		}
		if fields = fields[i+1:]; len(fields) == 2 && fields[1] == "kB" {
			if kib, err := strconv.ParseUint(fields[0], 10, 64); err == nil && kib <= 1<<53 {
				return kib << 10
			}
		}
		r.malformed(file, "an amount of memory", strings.TrimSpace(line))
		return 0
	}
	r.malformed(file, "a meminfo with MemTotal", text)
	return 0
}

// distances reads one number for each of the nodes ids, which is all that
// are online, in ascending order.
func (r *treeReader) distances(id int, ids Set) []Distance {
	file := nodeFile(id, "distance")
	text, ok := r.text(file)
	fields := strings.Fields(text)
	switch {
	case !ok:
		r.note("no %s: other nodes are taken as %d away", file, slitRemote)
		fields = nil
	case len(fields) != ids.Len():
		r.malformed(file, "one distance for each of nodes "+ids.String(), text)
		fields = nil
	}
	distances := make([]Distance, 0, ids.Len())
	for to := range ids.All() {
		d := Distance{to, slitRemote}
		if to == id {
			d.Distance = slitLocal
		}
		if i := len(distances); fields != nil {
			// 255 is unreachable in ACPI's table, which has bytes.
			n, err := strconv.ParseUint(fields[i], 10, 31)
			if err != nil || n == 0 {
				r.malformed(file, "a distance", fields[i])
			} else {
				d.Distance = int(n)
			}
		}
		distances = append(distances, d)
	}
	return distances
}

// share makes the nodes' CPUs a partition of those online. A CPU that several
// nodes claim (emulated nodes do) goes to the first with memory, or else the
// first; one that none claims to the first with memory and CPUs, or else the
// first.
func (r *treeReader) share(nodes []Node, online Set) {
	order := make([]*Node, len(nodes))
	for i := range nodes {
		order[i] = &nodes[i]
	}
	slices.SortStableFunc(order, func(a, b *Node) int {
		return rank(a.MemoryBytes == 0) - rank(b.MemoryBytes == 0)
	})
	var claimed Set
	for _, n := range order {
		if twice := n.CPUs.Intersect(claimed); !twice.Empty() {
			r.note("node %d claims CPUs %v, as another node does: they are taken as of the other", n.ID, twice)
		}
		n.CPUs = n.CPUs.Difference(claimed)
		claimed = claimed.Union(n.CPUs)
	}
	left := online.Difference(claimed)
	if left.Empty() {
		return
	}
	slices.SortStableFunc(order, func(a, b *Node) int {
		return rank(a.MemoryBytes == 0 || a.CPUs.Empty()) - rank(b.MemoryBytes == 0 || b.CPUs.Empty())
	})
	r.note("no online node claims CPUs %v: they are taken as of node %d", left, order[0].ID)
	order[0].CPUs = order[0].CPUs.Union(left)
}

// rank orders what is last behind the rest.
func rank(last bool) int {
	if last {
		return 1
	}
	return 0
}

func nodeFile(id int, name string) string {
	return path.Join(sysNode, "node"+strconv.Itoa(id), name)
}
