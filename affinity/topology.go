package affinity

// Topology is what a machine's kernel tells about its CPUs and memory, and
// what the cgroup of the process leaves of them. It is a snapshot: CPUs and
// memory come and go, and nothing here follows. It shares no memory with
// anything else, so it may be read by several goroutines at once.
type Topology struct {
	// Possible holds the CPUs that can ever be there, Online those that run.
	Possible, Online Set

	// Nodes holds the online NUMA nodes by ascending ID. A kernel without
	// NUMA has one node, 0, with all CPUs that are online.
	Nodes []Node

	// Cores holds one set of SMT siblings per physical core, ordered by
	// lowest CPU.
	Cores []Set

	// L3 holds one set for each last-level cache: the CPUs that share it,
	// ordered by lowest CPU.
	L3 []Set

	// CPUSet holds the CPUs of the cgroup's effective cpuset and MemSet the
	// memory nodes it allows. Empty: none is known.
	CPUSet, MemSet Set

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
