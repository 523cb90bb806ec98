//go:build linux && numa

package guest

import (
	"maps"
	"slices"
	"syscall"
	"testing"
)

// byNode is the cell of each CPU on a machine with two nodes of four.
var byNode = [8]int{0, 0, 0, 0, 1, 1, 1, 1}

// answers sends a request on each of n new connections from each CPU, and returns how
// many each loop took.
func (p *process) answers(t *testing.T, cpus []int, n int) map[loop]int {
	t.Helper()
	before := requests(t)
	for _, cpu := range cpus {
		for range n {
			dialFrom(t, cpu).ask(t, "/api/users/1")
		}
	}
	var grown map[loop]int
	p.eventually(t, "the requests on /metrics", func() bool {
		grown = make(map[loop]int)
		sum := 0
		for l, count := range requests(t) {
			if more := count - before[l]; more != 0 {
				grown[l] = more
				sum += more
			}
		}
		return sum == n*len(cpus)
	})
	return grown
}

// steers wants connections from each CPU to be answered by the given cell.
func (p *process) steers(t *testing.T, cells [8]int) {
	t.Helper()
	const connections = 4 // of each CPU; more than chance would bring to one cell
	for cell := range slices.Max(cells[:]) + 1 {
		var cpus []int
		for cpu, its := range cells {
			if its == cell {
				cpus = append(cpus, cpu)
			}
		}
		got := make(map[int]int)
		for l, n := range p.answers(t, cpus, connections) {
			got[l.cell] += n
		}
		if !maps.Equal(got, map[int]int{cell: connections * len(cpus)}) {
			t.Errorf("requests from CPUs %v by cell: %v, want them all in cell %d", cpus, got, cell)
		}
	}
}

// steersLoops wants connections from each CPU to be answered by the given loop.
func (p *process) steersLoops(t *testing.T, loops [8]loop) {
	t.Helper()
	for cpu, want := range loops {
		const connections = 3
		if got := p.answers(t, []int{cpu}, connections); !maps.Equal(got, map[loop]int{want: connections}) {
			t.Errorf("requests from CPU %d by loop: %v, want them all in %v", cpu, got, want)
		}
	}
}

// TestSteerCPU: the loop of exactly the CPU that took the packet.
func TestSteerCPU(t *testing.T) {
	p := start(t, "-steer", "cpu")
	p.is(t, cell{"0-3", "0", 4}, cell{"4-7", "1", 4})
	p.steersLoops(t, [...]loop{{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 0}, {1, 1}, {1, 2}, {1, 3}})
	p.stop(t, syscall.SIGTERM)
}

// TestSteerCPUOneProcess: the same without cells.
func TestSteerCPUOneProcess(t *testing.T) {
	p := start(t, "-cells", "off", "-steer", "cpu")
	p.is(t, cell{"0-7", "", 8})
	p.steersLoops(t, [...]loop{{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}, {0, 7}})
	p.stop(t, syscall.SIGTERM)
}

// TestSteerOff: without steering, connections from one CPU reach both cells; so it is
// steering that the other tests see.
func TestSteerOff(t *testing.T) {
	p := start(t, "-steer", "off")
	got := make(map[int]int)
	for l, n := range p.answers(t, []int{0}, 40) {
		got[l.cell] += n
	}
	if len(got) != 2 {
		t.Errorf("requests from CPU 0 by cell %v, want some in both", got)
	}
	p.stop(t, syscall.SIGTERM)
}
