package machine

import (
	"fmt"
	"strconv"
	"strings"
)

// Machine is what qemu shall emulate. CPUs are numbered node by node.
type Machine struct {
	Name     string // in one word; it stands before each line of output
	Nodes    []Node // their numbers are their places
	Sockets  int    // CPUs of one socket share an L3 cache
	Threads  int    // SMT siblings per core
	Distance []Distance
}

// Node is a NUMA node. It may lack CPUs or memory, but not both.
type Node struct {
	CPUs     string // a range: "0-3"; "" for none
	MemoryMB int    // 0 for none
}

// Distance is what SLIT says between two nodes, both ways; pairs that are not
// given have 20.
type Distance struct{ A, B, Value int }

// CPUs is how many CPUs every machine has.
const CPUs = 8

// hardware returns qemu's arguments for m.
func (m Machine) hardware() []string {
	memory := 0
	var nodes []string
	for i, n := range m.Nodes {
		node := "node,nodeid=" + strconv.Itoa(i)
		if n.CPUs != "" {
			node += ",cpus=" + n.CPUs
		}
		if n.MemoryMB > 0 {
			memory += n.MemoryMB
			nodes = append(nodes, "-object", fmt.Sprintf("memory-backend-ram,id=m%d,size=%dM", i, n.MemoryMB))
			node += ",memdev=m" + strconv.Itoa(i)
		}
		nodes = append(nodes, "-numa", node)
	}
	for _, d := range m.Distance {
		nodes = append(nodes, "-numa", fmt.Sprintf("dist,src=%d,dst=%d,val=%d", d.A, d.B, d.Value))
	}
	return append([]string{
		"-nodefaults", "-no-user-config", "-no-reboot",
		"-display", "none", "-monitor", "none", "-serial", "stdio",
		// No KVM: it is there on few hosts that build software, and nothing here
		// is about speed.
		"-accel", "tcg,thread=multi",
		"-cpu", "Nehalem", // one that can have SMT siblings
		"-smp", fmt.Sprintf("%d,sockets=%d,cores=%d,threads=%d", CPUs, m.Sockets, CPUs/m.Sockets/m.Threads, m.Threads),
		"-m", strconv.Itoa(memory),
	}, nodes...)
}

// append returns the kernel's command line. The kernel hands what follows "--"
// to init as arguments.
func commandLine(init string, args []string) string {
	return strings.Join(append([]string{
		"console=ttyS0",
		"loglevel=4",      // errors only: the console is for the tests
		"mitigations=off", // slow, and nobody attacks it
		"panic=-1",        // a panic restarts at once, which -no-reboot makes an end
		"rdinit=" + init, "--",
	}, args...), " ")
}
