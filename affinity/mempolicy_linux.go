package affinity

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// MemoryPolicy returns nil if this process may prefer memory of nodes, found
// out by doing so on a thread, which then has its old policy again. If not, the error
// says why, and a [Placement] cannot be had with that Memory: seccomp profiles
// of containers refuse with EPERM unless there is CAP_SYS_NICE; EINVAL are
// nodes of which none has memory and is in the cpuset; and a kernel without
// NUMA does not know the call, in which case the error is
// [errors.ErrUnsupported]. Without nodes there is nothing to set, and no error.
func MemoryPolicy(nodes Set) error {
	if nodes.Empty() {
		return nil
	}
	result := make(chan error)
	go func() { result <- tryPolicy(nodes) }()
	return <-result
}

// tryPolicy ends the thread of its goroutine, with that, if the thread cannot
// have its old policy again.
func tryPolicy(nodes Set) error {
	runtime.LockOSThread()
	old, err := threadPolicy()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	err = prefer(nodes)
	if stuck := old.set(); stuck != nil {
		return errors.Join(err, stuck)
	}
	runtime.UnlockOSThread()
	return err
}

// memoryPolicy is a thread's policy as set_mempolicy(2) takes it.
type memoryPolicy struct {
	mode  int // with its flags
	nodes Set
}

// threadPolicy returns the policy of the calling thread.
func threadPolicy() (memoryPolicy, error) {
	// 1,024 nodes are the most a kernel can be built for (NODES_SHIFT).
	words := make([]uint, 1024/wordBits)
	mode, err := getPolicy(words)
	if err != nil {
		return memoryPolicy{}, fmt.Errorf("get_mempolicy: %w", err)
	}
	return memoryPolicy{mode: mode, nodes: setOfWords(words)}, nil
}

// set gives m to the calling thread.
func (m memoryPolicy) set() error {
	if err := setPolicy(m.mode, m.nodes.words); err != nil {
		return fmt.Errorf("set_mempolicy to mode %#x, nodes %q: %w", m.mode, m.nodes, err)
	}
	return nil
}

// prefers reports whether m is what [prefer] makes of nodes. The kernel drops
// those that have no memory or are outside the cpuset.
func (m memoryPolicy) prefers(nodes Set) bool {
	return (m.mode == unix.MPOL_PREFERRED || m.mode == unix.MPOL_PREFERRED_MANY) &&
		!m.nodes.Empty() && m.nodes.Difference(nodes).Empty()
}

// prefer lets the calling thread take its memory from nodes, of which there
// must be one. Kernels before 5.15 know a preference for one only, and get
// the lowest.
func prefer(nodes Set) error {
	if nodes.Len() > 1 {
		err := memoryPolicy{unix.MPOL_PREFERRED_MANY, nodes}.set()
		if !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return memoryPolicy{unix.MPOL_PREFERRED, nodes}.set()
}
