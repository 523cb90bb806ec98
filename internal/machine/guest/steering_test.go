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

// answers sends a request on each of n new connections from a CPU, and returns how
// many each loop took.
func (p *process) answers(t *testing.T, cpu, n int) map[loop]int {
	t.Helper()
	before := requests(t)
	for range n {
		dialFrom(t, cpu).ask(t, "/api/users/1")
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
		return sum == n
	})
	return grown
}

// answersOfCells is answers by cell, and logged.
func (p *process) answersOfCells(t *testing.T, cpu, n int) map[int]int {
	t.Helper()
	got := make(map[int]int)
	for l, answered := range p.answers(t, cpu, n) {
		got[l.cell] += answered
	}
	for _, cell := range slices.Sorted(maps.Keys(got)) {
		t.Logf("from CPU %d: cell %d answered %d of %d", cpu, cell, got[cell], n)
	}
	return got
}

// steersCPU wants connections from a CPU to be answered by the given cell.
func (p *process) steersCPU(t *testing.T, cpu, cell int) {
	t.Helper()
	const connections = 4 // of each of eight CPUs: more than chance would bring to one cell
	if got := p.answersOfCells(t, cpu, connections); got[cell] != connections {
		t.Errorf("requests from CPU %d by cell: %v, want them all in cell %d", cpu, got, cell)
	}
}

// steers wants connections from each CPU to be answered by the given cell.
func (p *process) steers(t *testing.T, cells [8]int) {
	t.Helper()
	for cpu, cell := range cells {
		p.steersCPU(t, cpu, cell)
	}
}

// steersLoops wants connections from each CPU to be answered by the given loop.
func (p *process) steersLoops(t *testing.T, loops [8]loop) {
	t.Helper()
	for cpu, want := range loops {
		const connections = 3
		got := p.answers(t, cpu, connections)
		if !maps.Equal(got, map[loop]int{want: connections}) {
			t.Errorf("requests from CPU %d by loop: %v, want them all in %v", cpu, got, want)
		}
		t.Logf("from CPU %d: cell %d, loop %d answered %d of %d", cpu, want.cell, want.loop, got[want], connections)
	}
}

// spreads wants connections from a CPU to be answered by both of two cells.
func (p *process) spreads(t *testing.T, cpu int) {
	t.Helper()
	// By chance, one cell has all once in 2^31 runs.
	if got := p.answersOfCells(t, cpu, 32); got[0] == 0 || got[1] == 0 {
		t.Errorf("requests from CPU %d by cell: %v, want some in both", cpu, got)
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
	p.spreads(t, 0)
	p.stop(t, syscall.SIGTERM)
}
