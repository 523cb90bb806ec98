//go:build linux && numa

package guest

import (
	"syscall"
	"testing"
)

// These tests are for the machine with CPUs 0-3 on node 0 and 4-7 on node 1.

// serve starts the server and wants it to consist of exactly these cells, and the
// command topology to say so before.
func serve(t *testing.T, args []string, cells ...cell) *process {
	t.Helper()
	foretold(t, args, cells)
	p := start(t, args...)
	p.is(t, cells...)
	return p
}

// TestCellsOff: one process on all CPUs, and so none that supervises.
func TestCellsOff(t *testing.T) {
	p := serve(t, []string{"-cells", "off"}, cell{"0-7", "", 8})
	p.stop(t, syscall.SIGTERM)
}

// TestOneNode: CPUs of one node need no second cell.
func TestOneNode(t *testing.T) {
	p := serve(t, []string{"-cpus", "0-3"}, cell{"0-3", "0", 4})
	p.stop(t, syscall.SIGHUP)
}

// TestPartsOfNodes: CPUs that are not served are still their node's when they take a
// packet.
func TestPartsOfNodes(t *testing.T) {
	p := serve(t, []string{"-cpus", "2-5"}, cell{"2-3", "0", 2}, cell{"4-5", "1", 2})
	p.steers(t, byNode)
	p.stop(t, syscall.SIGHUP)
}

// TestPartsOfANode asks for more cells than there are nodes.
func TestPartsOfANode(t *testing.T) {
	p := serve(t, []string{"-cells", "4"}, cell{"0-1", "0", 2}, cell{"2-3", "0", 2}, cell{"4-5", "1", 2}, cell{"6-7", "1", 2})
	p.steers(t, [...]int{0, 0, 1, 1, 2, 2, 3, 3})
	p.stop(t, syscall.SIGTERM)
}

// TestFreeCPUs of a node are for all cells of the node; their own are not.
func TestFreeCPUs(t *testing.T) {
	p := serve(t, []string{"-cpus", "0-1", "-cells", "2"}, cell{"0", "0", 1}, cell{"1", "0", 1})
	for _, cpu := range []int{0, 1} {
		p.steersCPU(t, cpu, cpu)
	}
	for _, cpu := range []int{2, 3} {
		p.spreads(t, cpu)
	}
	p.stop(t, syscall.SIGTERM)
}

// TestTwoCells goes through the life of a server with two cells.
func TestTwoCells(t *testing.T) {
	cells := []cell{{"0-3", "0", 4}, {"4-7", "1", 4}}
	p := serve(t, []string{"-cpus", "0-7"}, cells...)
	for _, step := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"steering", func(t *testing.T) { p.steers(t, byNode) }},
		{"writes", func(t *testing.T) { coherent(t, p, 200) }},
		{"private port", privatePort},
		{"stopped", func(t *testing.T) { stoppedCell(t, p) }},
		{"killed", func(t *testing.T) {
			killedCell(t, p, 1)
			p.is(t, cells...)
			p.steers(t, byNode)
		}},
		{"first killed", func(t *testing.T) {
			killedCell(t, p, 0)
			p.is(t, cells...)
			p.steers(t, byNode)
		}},
		{"writes again", func(t *testing.T) { coherent(t, p, 20) }},
		{"drain", func(t *testing.T) { p.stop(t, syscall.SIGTERM) }},
	} {
		if !t.Run(step.name, step.run) {
			return // what follows would fail for the same reason
		}
	}
}

// TestFourCells is for the machine with four nodes of two CPUs.
func TestFourCells(t *testing.T) {
	p := serve(t, nil, cell{"0-1", "0", 2}, cell{"2-3", "1", 2}, cell{"4-5", "2", 2}, cell{"6-7", "3", 2})
	p.steers(t, [...]int{0, 0, 1, 1, 2, 2, 3, 3})
	p.stop(t, syscall.SIGTERM)
}

// TestMergedCells is for the same machine, on which nodes 0 and 2 are near each other,
// and 1 and 3.
func TestMergedCells(t *testing.T) {
	p := serve(t, []string{"-cells", "2"}, cell{"0-1,4-5", "", 4}, cell{"2-3,6-7", "", 4})
	p.steers(t, [...]int{0, 0, 1, 1, 0, 0, 1, 1})
	p.stop(t, syscall.SIGTERM)
}

// TestMemoryNode is for the machine on which node 1 has CPUs and no memory, and node 2,
// which is the nearest to it, has memory and no CPUs.
func TestMemoryNode(t *testing.T) {
	p := serve(t, nil, cell{"0-3", "0", 4}, cell{"4-7", "2", 4})
	p.steers(t, byNode)
	p.stop(t, syscall.SIGTERM)
}
