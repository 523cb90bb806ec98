package affinity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// machine makes a topology of nodes with these CPUs, each with memory and 20
// away from the others.
func machine(t *testing.T, cpus ...string) *Topology {
	t.Helper()
	m := new(Topology)
	for id, list := range cpus {
		n := Node{ID: id, CPUs: set(t, list), MemoryBytes: 1 << 30}
		for to := range cpus {
			d := Distance{to, 20}
			if to == id {
				d.Distance = 10
			}
			n.Distances = append(n.Distances, d)
		}
		m.Nodes = append(m.Nodes, n)
		m.Online = m.Online.Union(n.CPUs)
	}
	m.Possible = m.Online
	return m
}

// apart sets the distances of all nodes, row by row.
func (t *Topology) apart(rows ...[]int) *Topology {
	for i, row := range rows {
		for j, d := range row {
			t.Nodes[i].Distances[j].Distance = d
		}
	}
	return t
}

func (t *Topology) limit(quota float64) *Topology {
	t.Quota, t.QuotaFrom = quota, "/sys/fs/cgroup/x/cpu.max"
	return t
}

func sets(t *testing.T, lists ...string) (sets []Set) {
	t.Helper()
	for _, l := range lists {
		sets = append(sets, set(t, l))
	}
	return sets
}

// plan is "CPUs@memory x GOMAXPROCS" for each cell.
func plan(t *testing.T, m *Topology, cpus, mode string) (string, []Cell) {
	t.Helper()
	c, err := ParseCells(mode)
	if err != nil {
		t.Fatal(err)
	}
	cells, err := m.Plan(set(t, cpus), c)
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for i, c := range cells {
		if c.Index != i {
			t.Errorf("cell %d has index %d", i, c.Index)
		}
		parts = append(parts, fmt.Sprintf("%v x%d", Placement{c.CPUs, c.Memory}, c.GOMAXPROCS))
		t.Logf("cell %d: CPUs %v, share %.3g: %s", i, c.CPUs, c.Share, c.Reason)
	}
	return strings.Join(parts, "; "), cells
}

func TestPlan(t *testing.T) {
	unsetenv(t)
	two := machine(t, "0-3", "4-7")
	one := machine(t, "0-7")
	four := machine(t, "0-3", "4-7", "8-11", "12-15").
		apart([]int{10, 32, 12, 32}, []int{32, 10, 32, 12}, []int{12, 32, 10, 32}, []int{32, 12, 32, 10})
	equal := machine(t, "0-3", "4-7", "8-11", "12-15")
	// Sibling CPUs as on many servers: core i is CPUs i and i+8.
	smt := machine(t, "0-3,8-11", "4-7,12-15")
	smt.Cores = sets(t, "0,8", "1,9", "2,10", "3,11", "4,12", "5,13", "6,14", "7,15")
	caches := machine(t, "0-15")
	caches.L3 = sets(t, "0-3", "4-7", "8-11", "12-15")
	caches.Cores = sets(t, "0-1", "2-3", "4-5", "6-7", "8-9", "10-11", "12-13", "14-15")
	// Node 2 has memory only, node 1 CPUs only.
	odd := machine(t, "0-3", "4-7", "").
		apart([]int{10, 20, 40}, []int{30, 10, 17}, []int{40, 17, 10})
	odd.Nodes[1].MemoryBytes = 0
	memset := machine(t, "0-3", "4-7")
	memset.MemSet = set(t, "1")
	none := machine(t, "0-3", "4-7")
	none.Nodes[0].MemoryBytes, none.Nodes[1].MemoryBytes = 0, 0
	overlap := machine(t, "0-5", "4-7")
	// Distances that one side tells wrongly, and a chain of near nodes.
	oneWay := machine(t, "0-3", "4-7", "8-11").
		apart([]int{10, 40, 20}, []int{12, 10, 20}, []int{20, 20, 10})
	chain := machine(t, "0-3", "4-7", "8-9", "10-13").
		apart([]int{10, 11, 40, 40}, []int{11, 10, 12, 40}, []int{40, 12, 10, 14}, []int{40, 40, 14, 10})
	bare := &Topology{}

	for _, tt := range []struct {
		name, cpus, mode string
		m                *Topology
		want             string
	}{
		{"two nodes", "0-7", "auto", two, "0-3@0 x4; 4-7@1 x4"},
		{"two nodes, one touched", "0-3", "auto", two, "0-3@0 x4"},
		{"two nodes, a part of each", "2-5", "auto", two, "2-3@0 x2; 4-5@1 x2"},
		{"two nodes, off", "0-7", "off", two, "0-7 x8"},
		{"two nodes, off on one", "4-6", "off", two, "4-6@1 x3"},
		{"two nodes, 1", "0-7", "1", two, "0-7 x8"},
		{"two nodes, 2", "0-7", "2", two, "0-3@0 x4; 4-7@1 x4"},
		{"two nodes, 3", "0-7", "3", two, "0-1@0 x2; 2-3@0 x2; 4-7@1 x4"},
		{"two nodes, 4", "0-7", "4", two, "0-1@0 x2; 2-3@0 x2; 4-5@1 x2; 6-7@1 x2"},
		{"two nodes, one each", "2-5", "4", two, "2@0 x1; 3@0 x1; 4@1 x1; 5@1 x1"},
		{"two nodes of unlike size", "0-4", "3", two, "0-1@0 x2; 2-3@0 x2; 4@1 x1"},
		{"one node", "0-7", "auto", one, "0-7 x8"},
		{"one node, 3", "0-7", "3", one, "0-2 x3; 3-5 x3; 6-7 x2"},

		{"four nodes", "0-15", "auto", four, "0-3@0 x4; 4-7@1 x4; 8-11@2 x4; 12-15@3 x4"},
		{"four nodes, 2: nearest", "0-15", "2", four, "0-3,8-11 x8; 4-7,12-15 x8"},
		{"four nodes, 3: nearest", "0-15", "3", four, "0-3,8-11 x8; 4-7@1 x4; 12-15@3 x4"},
		{"four nodes, three touched", "0-11", "2", four, "0-3,8-11 x8; 4-7@1 x4"},
		{"the larger distance counts", "0-11", "2", oneWay, "0-3,8-11 x8; 4-7@1 x4"},
		{"near to each, not to one of them", "0-13", "2", chain, "0-7 x8; 8-13 x6"},
		{"four equal nodes, 2", "0-15", "2", equal, "0-7 x8; 8-15 x8"},

		{"quota above the nodes", "0-7", "auto", machine(t, "0-3", "4-7").limit(6), "0-3@0 x3; 4-7@1 x3"},
		{"quota of 3", "0-7", "auto", machine(t, "0-3", "4-7").limit(3), "0-3@0 x1; 4-7@1 x1"},
		{"quota below the nodes", "0-7", "auto", machine(t, "0-3", "4-7").limit(1.5), "0-7 x1"},
		{"quota of a tenth", "0-7", "auto", machine(t, "0-3", "4-7").limit(0.1), "0-7 x1"},
		{"quota of 2.5 on four nodes", "0-15", "auto", machine(t, "0-3", "4-7", "8-11", "12-15").limit(2.5), "0-7 x1; 8-15 x1"},
		{"quota below a fixed number", "0-7", "4", machine(t, "0-7").limit(2), "0-1 x1; 2-3 x1; 4-5 x1; 6-7 x1"},
		{"quota that is not even", "0-8", "auto", machine(t, "0", "1", "2-8").limit(5), "0@0 x1; 1@1 x1; 2-8@2 x3"},
		{"a third of 6", "0-11", "3", machine(t, "0-11").limit(6), "0-3 x2; 4-7 x2; 8-11 x2"},
		{"quota without effect", "0-7", "auto", machine(t, "0-3", "4-7").limit(8), "0-3@0 x4; 4-7@1 x4"},

		{"siblings stay together", "0-15", "4", smt, "0-1,8-9@0 x4; 2-3,10-11@0 x4; 4-5,12-13@1 x4; 6-7,14-15@1 x4"},
		{"a core each", "0-15", "8", smt, "0,8@0 x2; 1,9@0 x2; 2,10@0 x2; 3,11@0 x2; 4,12@1 x2; 5,13@1 x2; 6,14@1 x2; 7,15@1 x2"},
		{"more than cores", "0-1,8-9", "3", smt, "0@0 x1; 8@0 x1; 1,9@0 x2"},
		{"half of each core", "0-3", "2", smt, "0-1@0 x2; 2-3@0 x2"},
		{"caches stay together", "0-15", "2", caches, "0-7 x8; 8-15 x8"},
		{"a cache each", "0-15", "4", caches, "0-3 x4; 4-7 x4; 8-11 x4; 12-15 x4"},
		{"caches, 3", "0-15", "3", caches, "0-7 x8; 8-11 x4; 12-15 x4"},
		{"more than caches", "0-15", "5", caches, "0-1 x2; 2-3 x2; 4-7 x4; 8-11 x4; 12-15 x4"},
		{"caches of unlike size", "0-3,12", "2", caches, "0-3 x4; 12 x1"},

		{"memory-less node: the nearest", "0-7", "auto", odd, "0-3@0 x4; 4-7@2 x4"},
		{"the cpuset has other memory", "0-7", "auto", memset, "0-3@1 x4; 4-7@1 x4"},
		{"no node with memory", "0-7", "auto", none, "0-3 x4; 4-7 x4"},
		{"nodes that overlap", "0-7", "auto", overlap, "0-5@0 x6; 6-7@1 x2"},
		{"CPUs of no node", "0-9", "auto", two, "0-3,8-9@0 x6; 4-7@1 x4"},
		{"nothing known", "0-3", "auto", bare, "0-3 x4"},
		{"nothing known, 2", "0-3", "2", bare, "0-1 x2; 2-3 x2"},
		{"large numbers", "5000-5003", "2", machine(t, "5000-5001", "5002-5003"), "5000-5001@0 x2; 5002-5003@1 x2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, _ := plan(t, tt.m, tt.cpus, tt.mode); got != tt.want {
				t.Errorf("\ngot  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestPlanReasons(t *testing.T) {
	unsetenv(t)
	two := machine(t, "0-3", "4-7")
	odd := machine(t, "0-3", "4-7")
	odd.Nodes[0].MemoryBytes = 0
	for _, tt := range []struct {
		m          *Topology
		cpus, mode string
		cell       int
		want       string
	}{
		{two, "0-7", "auto", 1, "the CPUs on node 1; GOMAXPROCS: one for each CPU of the mask"},
		{two, "0-7", "off", 0, "nodes 0-1 together: cells=off is set; GOMAXPROCS: one for each CPU of the mask"},
		{two, "0-7", "1", 0, "nodes 0-1 together: cells=1 is set; GOMAXPROCS: one for each CPU of the mask"},
		{two, "0-7", "4", 3, "the CPUs on node 1, part 2 of 2 by cores; GOMAXPROCS: one for each CPU of the mask"},
		{odd, "0-3", "auto", 0, "the CPUs on node 0, memory from node 1, the nearest that has some for it; GOMAXPROCS: one for each CPU of the mask"},
		{machine(t, "0-3", "4-7").limit(1.5), "0-7", "auto", 0, "nodes 0-1 together: the cgroup quota of 1.5 CPUs is enough for 1; GOMAXPROCS: cgroup quota 1.5 CPUs at /sys/fs/cgroup/x/cpu.max"},
		{machine(t, "0-3", "4-7").limit(5), "0-7", "auto", 1, "the CPUs on node 1; GOMAXPROCS: cgroup quota 5 CPUs at /sys/fs/cgroup/x/cpu.max, 2.5 of them for this process"},
		{two, "0-9", "auto", 0, "the CPUs on node 0 and 8-9, whose node is not known; GOMAXPROCS: one for each CPU of the mask"},
		{new(Topology), "0-1", "auto", 0, "CPUs of which no node is known; GOMAXPROCS: one for each CPU of the mask"},
	} {
		_, cells := plan(t, tt.m, tt.cpus, tt.mode)
		if got := cells[tt.cell].Reason; got != tt.want {
			t.Errorf("%s on %s:\ngot  %s\nwant %s", tt.mode, tt.cpus, got, tt.want)
		}
	}
}

func TestPlanShares(t *testing.T) {
	unsetenv(t)
	for _, tt := range []struct {
		m    *Topology
		cpus string
		mode string
		want []float64
	}{
		{machine(t, "0-3", "4-7"), "0-7", "auto", []float64{0.5, 0.5}},
		{machine(t, "0-3", "4-7"), "1-7", "off", []float64{1}},
		{machine(t, "0", "1-3"), "0-3", "auto", []float64{0.25, 0.75}},
		{machine(t, "0", "1-3").limit(4), "0-3", "auto", []float64{0.25, 0.75}},
		// A quarter of 2.5 would be less than a CPU.
		{machine(t, "0", "1-3").limit(2.5), "0-3", "auto", []float64{0.4, 0.6}},
		// Lifting the first leaves the second too little as well.
		{machine(t, "0-1", "2-4", "5-15").limit(4), "0-15", "auto", []float64{0.25, 0.25, 0.5}},
		{machine(t, "0", "1-3").limit(1), "0-3", "2", []float64{0.5, 0.5}},
	} {
		_, cells := plan(t, tt.m, tt.cpus, tt.mode)
		for i, c := range cells {
			if math.Abs(c.Share-tt.want[i]) > 1e-9 {
				t.Errorf("%s on %s, quota %v: cell %d has %v, want %v", tt.mode, tt.cpus, tt.m.Quota, i, c.Share, tt.want[i])
			}
		}
	}
}

// What a process will find for itself is what the plan said.
func TestPlanIsWhatCellsDecide(t *testing.T) {
	for _, env := range []string{"", "1", "3"} {
		t.Setenv("GOMAXPROCS", env)
		m := machine(t, "0-3", "4-7")
		d, err := Decide("testdata/v2-ancestor", set(t, "0-7"), 1) // 2.5 CPUs
		if err != nil {
			t.Fatal(err)
		}
		m.Quota, m.QuotaFrom = d.Quota, d.QuotaFrom
		_, cells := plan(t, m, "0-7", "auto")
		for _, c := range cells {
			d, err := Decide("testdata/v2-ancestor", c.CPUs, c.Share)
			if err != nil || d.GOMAXPROCS != c.GOMAXPROCS || !strings.HasSuffix(c.Reason, d.Reason) {
				t.Errorf("GOMAXPROCS=%q: the cell decides %v, %v, the plan was %+v", env, d, err, c)
			}
		}
	}
}

// randomMachine has nodes that may overlap, lack memory, CPUs or distances,
// and levels that have nothing to do with each other.
func randomMachine(r *rand.Rand) (m *Topology, cpus Set) {
	some := func(n int) (s Set) {
		for range n {
			lo := r.IntN(90)
			s.addRange(lo, lo+r.IntN(12))
		}
		return s
	}
	m = new(Topology)
	id := 0
	for range r.IntN(7) {
		n := Node{ID: id, CPUs: some(r.IntN(3))}
		id += 1 + r.IntN(3)
		if r.IntN(4) > 0 {
			n.MemoryBytes = 1
		}
		for to := range r.IntN(9) {
			n.Distances = append(n.Distances, Distance{to, r.IntN(40)})
		}
		m.Nodes = append(m.Nodes, n)
	}
	for range r.IntN(8) {
		m.L3 = append(m.L3, some(1))
	}
	for range r.IntN(30) {
		m.Cores = append(m.Cores, some(1))
	}
	if r.IntN(2) == 0 {
		m.limit(r.Float64() * 20)
		if r.IntN(2) == 0 {
			m.limit(float64(1 + r.IntN(20)))
		}
	}
	if r.IntN(4) == 0 {
		m.MemSet = some(1)
	}
	return m, some(1 + r.IntN(5))
}

func TestPlanProperties(t *testing.T) {
	unsetenv(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		m, cpus := randomMachine(r)
		mode := Cells{n: r.IntN(1 + cpus.Len())}
		if mode.n == 1 {
			mode.off = r.IntN(2) == 0
		}
		cells, err := m.Plan(cpus, mode)
		if err != nil {
			t.Fatalf("%+v, CPUs %v, cells %v: %v", m, cpus, mode, err)
		}
		if why := wrong(m, cpus, mode, cells); why != "" {
			t.Fatalf("%+v, CPUs %v, cells %v: %s\n%+v", m, cpus, mode, why, cells)
		}
		if again, err := m.Plan(cpus, mode); err != nil || fmt.Sprint(again) != fmt.Sprint(cells) {
			t.Fatalf("%+v, CPUs %v, cells %v: not the same again:\n%+v\n%+v, %v", m, cpus, mode, cells, again, err)
		}
	}
}

// Machines as their kernels describe them.
func TestPlanOfTrees(t *testing.T) {
	unsetenv(t)
	files, err := os.ReadDir("testdata/topology")
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	for _, file := range files {
		content, _ := tree(t, file.Name())
		m, err := ReadTopology(unpack(t, content))
		if err != nil || m.Online.Empty() {
			continue // tested where trees are read
		}
		for _, mode := range []Cells{{}, {n: 1, off: true}, {n: m.Online.Len()}, {n: (m.Online.Len() + 1) / 2}} {
			cells, err := m.Plan(m.Online, mode)
			if err != nil {
				t.Errorf("%s, cells %v: %v", file.Name(), mode, err)
			} else if why := wrong(&m, m.Online, mode, cells); why != "" {
				t.Errorf("%s, cells %v: %s\n%+v", file.Name(), mode, why, cells)
			}
		}
	}
}

// wrong says what no plan may be.
func wrong(m *Topology, cpus Set, mode Cells, cells []Cell) string {
	var union Set
	procs, share := 0, 0.0
	for i, c := range cells {
		switch {
		case c.Index != i:
			return "an index is wrong"
		case c.CPUs.Empty():
			return "a cell is empty"
		case !c.CPUs.Intersect(union).Empty():
			return "cells overlap"
		case c.GOMAXPROCS < 1 || c.GOMAXPROCS > c.CPUs.Len():
			return "a GOMAXPROCS is wrong"
		case c.Reason == "" || strings.Contains(c.Reason, "\n"):
			return "a reason is not one line"
		case c.Memory.Len() > 1 || c.Nodes.Len() > 1 && !c.Memory.Empty():
			return "memory is wrong"
		case c.Share <= 0 || c.Share > 1:
			return "a share is wrong"
		}
		for id := range c.Memory.All() {
			i := slices.IndexFunc(m.Nodes, func(n Node) bool { return n.ID == id })
			if i < 0 || m.Nodes[i].MemoryBytes == 0 || !m.MemSet.Empty() && !m.MemSet.Contains(id) {
				return "memory cannot be had"
			}
		}
		union = union.Union(c.CPUs)
		procs += c.GOMAXPROCS
		share += c.Share
	}
	switch n, fixed := mode.Count(); {
	case !union.Equal(cpus):
		return "not all CPUs"
	case fixed && len(cells) != n:
		return "another number of cells"
	case !fixed && len(cells) > max(1, len(m.Nodes)):
		return "more cells than nodes"
	case !fixed && m.Quota > 0 && len(cells) > max(1, int(m.Quota)):
		return "more cells than quota"
	case m.Quota > 0 && procs > max(len(cells), int(m.Quota)):
		return "more threads than quota"
	case math.Abs(share-1) > 1e-9:
		return "the shares are not 1"
	}
	return ""
}
