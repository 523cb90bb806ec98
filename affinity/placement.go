package affinity

// Placement says where a process runs and where its memory comes from.
type Placement struct {
	// CPUs is the mask of every thread.
	CPUs Set

	// Memory holds the NUMA nodes that pages are taken from as long as these
	// have some left; after that, any other node's. Preferred and not bound,
	// because a full node should make a process slower and not end it.
	// Empty: the memory policy stays as it is.
	Memory Set
}

// String returns the CPUs, and after an "@" the nodes if there are any:
// "0-3@0".
func (p Placement) String() string {
	if p.Memory.Empty() {
		return p.CPUs.String()
	}
	return p.CPUs.String() + "@" + p.Memory.String()
}
