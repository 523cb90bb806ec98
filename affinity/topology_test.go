package affinity

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree reads a machine from testdata/topology: a file name between dashes
// stands before each file's content, and "want" before what is expected of
// the whole.
func tree(t testing.TB, name string) (files map[string]string, want string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/topology", name))
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for _, part := range strings.Split(string(text), "\n-- ")[1:] {
		file, content, ok := strings.Cut(part, " --\n")
		if !ok {
			t.Fatalf("%s: no file name in %q", name, part)
		}
		files[file] = strings.TrimSuffix(content, "\n") + "\n"
	}
	want = files["want"]
	delete(files, "want")
	return files, want
}

// unpack writes files below a directory of the test.
func unpack(t testing.TB, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, content := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// describe writes everything there is in a topology.
func describe(t Topology) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("possible %v", t.Possible)
	line("online %v", t.Online)
	for _, n := range t.Nodes {
		var distances []string
		for _, d := range n.Distances {
			distances = append(distances, fmt.Sprintf("%d:%d", d.Node, d.Distance))
		}
		line("node %d: cpus %v, %d MiB, distances %s", n.ID, n.CPUs, n.MemoryBytes>>20, strings.Join(distances, " "))
	}
	for _, core := range t.Cores {
		line("core %v", core)
	}
	for _, l3 := range t.L3 {
		line("l3 %v", l3)
	}
	if !t.CPUSet.Empty() {
		line("cpuset %v", t.CPUSet)
	}
	if !t.MemSet.Empty() {
		line("mems %v", t.MemSet)
	}
	if t.Quota != 0 || t.QuotaFrom != "" {
		line("quota %v from %s", t.Quota, t.QuotaFrom)
	}
	for _, note := range t.Notes {
		line("note %s", note)
	}
	return b.String()
}

func TestReadTopology(t *testing.T) {
	trees, err := filepath.Glob("testdata/topology/*.txt")
	if err != nil || len(trees) == 0 {
		t.Fatal("no trees", err)
	}
	for _, name := range trees {
		name = filepath.Base(name)
		t.Run(strings.TrimSuffix(name, ".txt"), func(t *testing.T) {
			files, want := tree(t, name)
			top, err := ReadTopology(unpack(t, files))
			if err != nil {
				t.Error(err)
			}
			if got := describe(top); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
			checkPartitions(t, top)
		})
	}
}

// checkPartitions tests what the documentation promises of every topology.
func checkPartitions(t *testing.T, top Topology) {
	t.Helper()
	var nodes []Set
	for i, n := range top.Nodes {
		nodes = append(nodes, n.CPUs)
		if i > 0 && top.Nodes[i-1].ID >= n.ID {
			t.Errorf("node %d stands before %d", top.Nodes[i-1].ID, n.ID)
		}
		if len(n.Distances) != len(top.Nodes) {
			t.Errorf("node %d has %d distances, there are %d nodes", n.ID, len(n.Distances), len(top.Nodes))
		}
		for j, d := range n.Distances {
			if d.Node != top.Nodes[j].ID {
				t.Errorf("node %d: distance %d is to node %d, want %d", n.ID, j, d.Node, top.Nodes[j].ID)
			}
		}
	}
	for name, parts := range map[string][]Set{"nodes": nodes, "cores": top.Cores, "L3": top.L3} {
		var all Set
		last := -1
		for _, part := range parts {
			if twice := all.Intersect(part); !twice.Empty() {
				t.Errorf("%s: CPUs %v are in two", name, twice)
			}
			all = all.Union(part)
			if first, ok := part.Min(); ok && name != "nodes" {
				if first < last {
					t.Errorf("%s: %v is out of order", name, part)
				}
				last = first
			}
		}
		if extra := all.Difference(top.Online); !extra.Empty() {
			t.Errorf("%s: CPUs %v are not online", name, extra)
		}
		if name != "L3" && !all.Equal(top.Online) {
			t.Errorf("%s: they have CPUs %v, online are %v", name, all, top.Online)
		}
	}
	if !top.Online.Difference(top.Possible).Empty() {
		t.Errorf("CPUs %v are online and not possible", top.Online.Difference(top.Possible))
	}
}

// Each case spoils one file of a machine that is right.
func TestReadTopologyMalformed(t *testing.T) {
	const (
		cpu  = "sys/devices/system/cpu/"
		node = "sys/devices/system/node/"
	)
	long := strings.Repeat("x", 1<<16)
	tests := []struct {
		file, content string
		want          []string // in the error
		then          string   // a line of the description
	}{
		{cpu + "online", "0-7;9", []string{"/" + cpu + "online", `"0-7;9"`}, "online 0-7"},
		{cpu + "online", "1-9223372036854775807", []string{"too large"}, "online 0-7"},
		{cpu + "possible", "0-", []string{"/" + cpu + "possible", "no end"}, "possible 0-7"},
		{cpu + "cpu0/topology/core_cpus_list", "4-0", []string{"cpu0/topology/core_cpus_list", "reversed"}, "core 4"},
		{cpu + "cpu0/cache/index3/level", "three", []string{"cpu0/cache/index3/level", `"three"`}, "l3 1,5"},
		{cpu + "cpu0/cache/index3/shared_cpu_list", "all", []string{"index3/shared_cpu_list", `"all"`}, "l3 1,5"},
		{node + "online", "0,x", []string{"/" + node + "online", `"x"`}, "node 1: cpus 2-3,6-7, 32768 MiB, distances 0:21 1:10"},
		{node + "node1/cpulist", "N", []string{"node1/cpulist", `"N"`}, "node 0: cpus 0-7, 32768 MiB, distances 0:10 1:21"},
		{node + "node1/meminfo", "Node 1 MemFree: 1 kB", []string{"node1/meminfo", "MemFree"}, "node 1: cpus 2-3,6-7, 0 MiB, distances 0:21 1:10"},
		{node + "node1/meminfo", "Node 1 MemTotal: 1 MB", []string{"node1/meminfo", "1 MB"}, "node 1: cpus 2-3,6-7, 0 MiB, distances 0:21 1:10"},
		{node + "node1/meminfo", "MemTotal: 99999999999999999 kB", []string{"node1/meminfo", "99999999999999999"}, ""},
		{node + "node1/meminfo", "MemTotal:", []string{"node1/meminfo", `"MemTotal:"`}, ""},
		{node + "node1/meminfo", long, []string{"node1/meminfo", "xxx..."}, ""},
		{node + "node0/distance", "10", []string{"node0/distance", "nodes 0-1", `"10"`}, "node 0: cpus 0-1,4-5, 32768 MiB, distances 0:10 1:20"},
		{node + "node0/distance", "10 21 31", []string{"node0/distance", `"10 21 31"`}, "node 0: cpus 0-1,4-5, 32768 MiB, distances 0:10 1:20"},
		{node + "node0/distance", "10 -21", []string{"node0/distance", `"-21"`}, "node 0: cpus 0-1,4-5, 32768 MiB, distances 0:10 1:20"},
		{node + "node0/distance", "0 21", []string{"node0/distance", `"0"`}, "node 0: cpus 0-1,4-5, 32768 MiB, distances 0:10 1:21"},
		{"proc/self/cgroup", "nonsense", []string{"/proc/self/cgroup", "nonsense"}, ""},
		{"proc/self/mountinfo", "nonsense", []string{"/proc/self/mountinfo", "nonsense"}, ""},
		{"cg/cpuset.cpus.effective", "0-3-4", []string{"/cg/cpuset.cpus.effective", `"0-3-4"`}, "mems 0"},
		{"cg/cpuset.mems.effective", "-", []string{"/cg/cpuset.mems.effective", `"-"`}, "cpuset 0-3"},
		{"proc/self/status", "Mems_allowed_list:\tsome", []string{"/proc/self/status", `"some"`}, "mems 0"},
		{"cg/cpu.max", "lots", []string{"/cg/cpu.max", `"lots"`}, "cpuset 0-3"},
	}
	for _, tt := range tests {
		files, _ := tree(t, "two-sockets.txt")
		maps.Copy(files, map[string]string{
			"proc/stat":                "cpu 1\n" + "cpu0 1\ncpu1 1\ncpu2 1\ncpu3 1\ncpu4 1\ncpu5 1\ncpu6 1\ncpu7 1\n",
			"proc/self/cgroup":         "0::/\n",
			"proc/self/mountinfo":      "30 24 0:26 / /cg rw - cgroup2 none rw\n",
			"cg/cpuset.cpus.effective": "0-3\n",
			"cg/cpuset.mems.effective": "0\n",
			// The next in line where CPU 0 tells nothing.
			cpu + "cpu1/cache/index3/level":           "3\n",
			cpu + "cpu1/cache/index3/shared_cpu_list": "1,5\n",
			cpu + "cpu4/topology/core_cpus_list":      "0,4\n",
			tt.file:                                   tt.content + "\n",
		})
		top, err := ReadTopology(unpack(t, files))
		if err == nil {
			t.Errorf("%s: %q: no error", tt.file, tt.content)
			continue
		}
		for _, part := range tt.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %.40q: error %q lacks %q", tt.file, tt.content, err, part)
			}
		}
		if len(err.Error()) > 300 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %.40q: not one short line: %q", tt.file, tt.content, err)
		}
		lines := strings.Split(describe(top), "\n")
		if tt.then != "" && !slices.Contains(lines, tt.then) {
			t.Errorf("%s: %.40q: no line %q in\n%s", tt.file, tt.content, tt.then, describe(top))
		}
		checkPartitions(t, top)
	}
}

// A file that is there and cannot be read is not taken as absent.
func TestReadTopologyUnreadable(t *testing.T) {
	files, _ := tree(t, "two-sockets.txt")
	delete(files, "sys/devices/system/node/node0/distance")
	files["sys/devices/system/node/node0/distance/is/a/directory"] = ""
	_, err := ReadTopology(unpack(t, files))
	var pe *fs.PathError
	if !errors.As(err, &pe) || !strings.HasSuffix(pe.Path, "node0/distance") {
		t.Errorf("got %v, want an error about node0/distance", err)
	}
}

func TestReadTopologyNothing(t *testing.T) {
	top, err := ReadTopology(t.TempDir())
	if !errors.Is(err, fs.ErrNotExist) || !top.Online.Empty() {
		t.Errorf("%v online, error %v; want none and fs.ErrNotExist", top.Online, err)
	}
}

// The memory that a process may have is what both its status and the cgroup tell.
func TestTopologyMemSet(t *testing.T) {
	const list = "Mems_allowed_list:\t"
	for _, tt := range []struct{ status, cgroup, want, note string }{
		{"", "0-1", "0-1", ""},
		{"Name:\tx\n", "1", "1", ""},
		{list + "\n", "1", "1", ""},
		{list + "1\nThreads:\t4\n", "", "1", ""},
		{list + "0-1\n", "1", "1", ""},
		{list + "0\n", "0-1", "0", ""},
		{list + "0\n", "1", "0", "taken as the memory nodes, though the cpuset has 1: those of /proc/self/status, 0"},
	} {
		files, _ := tree(t, "two-sockets.txt")
		maps.Copy(files, map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"proc/self/mountinfo":      "30 24 0:26 / /cg rw - cgroup2 none rw\n",
			"cg/cpuset.mems.effective": tt.cgroup + "\n",
			"proc/self/status":         tt.status,
		})
		top, err := ReadTopology(unpack(t, files))
		if err != nil || top.MemSet.String() != tt.want {
			t.Errorf("status %q, cpuset %q: memory nodes %v, %v, want %s", tt.status, tt.cgroup, top.MemSet, err, tt.want)
		}
		if (tt.note != "") != slices.Contains(top.Notes, tt.note) {
			t.Errorf("status %q, cpuset %q: notes %q, want %q", tt.status, tt.cgroup, top.Notes, tt.note)
		}
	}
}

// A memory policy for a node outside the cpuset is refused, so none may be planned.
func TestTopologyPlanWithinHiddenCPUSet(t *testing.T) {
	unsetenv(t)
	files, _ := tree(t, "cgroup-hidden.txt")
	top, err := ReadTopology(unpack(t, files))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := plan(t, &top, "0-7", "auto"); got != "0-3@1 x4; 4-7@1 x4" {
		t.Errorf("planned %s", got)
	}
}

func TestTopologyCheck(t *testing.T) {
	full := Topology{
		Possible: set(t, "0-15"), Online: set(t, "0-11"), CPUSet: set(t, "0-7"),
	}
	free := full
	free.CPUSet = Set{}
	tests := []struct {
		top           Topology
		cpus, allowed string
		want          string
	}{
		{full, "16", "0-3", "CPU 16 does not exist (allowed: 0-3)"},
		{full, "0,16-17", "0-3", "CPUs 16-17 do not exist (allowed: 0-3)"},
		{full, "12", "0-3", "CPU 12 is offline (allowed: 0-3)"},
		{full, "8-9", "0-3", "CPUs 8-9 are outside the cpuset (allowed: 0-3)"},
		{full, "3-4", "0-3", "CPU 4 is outside the CPU mask (allowed: 0-3)"},
		{free, "8-9", "0-3", "CPUs 8-9 are outside the CPU mask (allowed: 0-3)"},
		{
			full, "0-16", "0-3",
			"CPU 16 does not exist, CPUs 12-15 are offline, CPUs 8-11 are outside the cpuset, " +
				"CPUs 4-7 are outside the CPU mask (allowed: 0-3)",
		},
		{
			full, "16-65535:1/2", "1-33:1/2",
			"CPUs 16,18,20,22,24,26,28,30,... (32760 in all) do not exist " +
				"(allowed: 1,3,5,7,9,11,13,15,... (17 in all))",
		},
		// What is known of the machine is of no use, and not told.
		{Topology{}, "4", "0-3", "CPU 4 is not allowed here (allowed: 0-3)"},
	}
	for _, tt := range tests {
		cpus, allowed := set(t, tt.cpus), set(t, tt.allowed)
		err := tt.top.Check(cpus, allowed)
		var refused *NotAllowedError
		if !errors.As(err, &refused) {
			t.Errorf("%s of %s: %v, want a NotAllowedError", tt.cpus, tt.allowed, err)
			continue
		}
		if err.Error() != tt.want {
			t.Errorf("%s of %s:\ngot  %v\nwant %s", tt.cpus, tt.allowed, err, tt.want)
		}
		if !refused.CPUs.Equal(cpus.Difference(allowed)) || !refused.Allowed.Equal(allowed) {
			t.Errorf("%s of %s: refused %v of %v", tt.cpus, tt.allowed, refused.CPUs, refused.Allowed)
		}
	}
}

func TestTopologyCheckRight(t *testing.T) {
	top := Topology{Possible: set(t, "0-15"), Online: set(t, "0-1"), CPUSet: set(t, "0-1")}
	// The mask is what counts: a made-up list of online CPUs forbids nothing.
	if err := top.Check(set(t, "2,4"), set(t, "2-4")); err != nil {
		t.Error(err)
	}
	if err := top.Check(Set{}, set(t, "0-1")); !errors.Is(err, ErrEmptySet) {
		t.Errorf("no CPU: %v, want ErrEmptySet", err)
	}
}
