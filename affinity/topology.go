package affinity

import "errors"

// Topology is what a machine's kernel tells about its CPUs and memory, and
// what the cgroup of the process leaves of them. It is a snapshot: CPUs and
// memory come and go, and nothing here follows. It shares no memory with
// anything else, so it may be read by several goroutines at once.
type Topology struct {
	// Possible holds the CPUs that can ever be there, Online those that run.
	Possible, Online Set

	// Nodes holds the online NUMA nodes by ascending ID. Each online CPU is
	// in one of them, and no other. A kernel without NUMA has one node, 0.
	Nodes []Node

	// Cores holds one set of SMT siblings per physical core, ordered by
	// lowest CPU. Each online CPU is in one of them, and no other.
	Cores []Set

	// L3 holds one set for each cache of the last level, if that is the
	// third or above: the CPUs that share it, ordered by lowest CPU. A CPU
	// is in one of them at most; virtual machines often tell of none.
	L3 []Set

	// CPUSet holds the CPUs of the cgroup's effective cpuset, or of the
	// nearest above it that has one. Empty: none is known.
	CPUSet Set

	// MemSet holds the memory nodes of the same cpuset that the kernel lets
	// this process have, which it tells also where the cgroup's files cannot
	// be seen. Empty: neither is known.
	MemSet Set

	// Quota is the tightest CPU limit of the cgroup and those above it, in
	// CPUs, and QuotaFrom the file that says so. 0 and "": no limit.
	Quota     float64
	QuotaFrom string

	// Notes tells the oddities of the files read and how they were taken,
	// one line each.
	Notes []string
}

// Node is a NUMA node: CPUs, or memory, or both.
type Node struct {
	ID          int
	CPUs        Set        // those online; empty for a memory-only node
	MemoryBytes uint64     // 0: the node has no memory
	Distances   []Distance // to every online node, itself included, by ascending ID
}

// Distance is how far the memory of another node is, in the units of the
// ACPI SLIT: 10 is local, 20 takes twice as long.
type Distance struct {
	Node, Distance int
}

// Check returns the error that keeps a process whose present mask is allowed
// from being put on cpus: [ErrEmptySet], or a [*NotAllowedError] that says for
// each CPU what is in the way.
func (t *Topology) Check(cpus, allowed Set) error {
	err := check(cpus, allowed)
	var refused *NotAllowedError
	if !errors.As(err, &refused) || t.Online.Empty() {
		return err
	}
	rest := refused.CPUs
	take := func(these Set) Set {
		rest = rest.Difference(these)
		return these
	}
	refused.Absent = take(rest.Difference(t.Possible))
	refused.Offline = take(rest.Difference(t.Online))
	if !t.CPUSet.Empty() {
		refused.OutsideCPUSet = take(rest.Difference(t.CPUSet))
	}
	refused.OutsideMask = rest
	return err
}
