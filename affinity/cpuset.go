package affinity

import (
	"path"
	"strings"
)

// cpuset is what a cgroup leaves of the CPUs and memory nodes.
type cpuset struct {
	cpus, mems Set
	effective  bool // cpus is what the kernel enforces, all of it online
}

// cpusetFile is a file that may tell one side of a cpuset.
type cpusetFile struct {
	name      string
	effective bool
}

// cpusetOf reads the cpuset of the own group or, where that has none, of the
// nearest one above, which then holds. An empty file, as in a version 1 group
// that was never set up, counts as none.
//
// Files: Documentation/admin-guide/cgroup-v2.rst, "Cpuset"; version 1:
// Documentation/admin-guide/cgroup-v1/cpusets.rst, where a mount with the
// option noprefix leaves out "cpuset.".
func (r *treeReader) cpusetOf(groups []cgroup) cpuset {
	var c cpuset
	for _, g := range groups {
		if !g.may("cpuset") {
			continue
		}
		cpuFiles := []cpusetFile{{"cpuset.cpus.effective", true}}
		memFiles := []cpusetFile{{"cpuset.mems.effective", true}}
		if !g.v2 {
			cpuFiles = []cpusetFile{
				{"cpuset.effective_cpus", true},
				{"effective_cpus", true},
				{"cpuset.cpus", false},
				{"cpus", false},
			}
			memFiles = []cpusetFile{
				{"cpuset.effective_mems", true},
				{"effective_mems", true},
				{"cpuset.mems", false},
				{"mems", false},
			}
		}
		if c.cpus.Empty() {
			c.cpus, c.effective = r.nearest(g, cpuFiles)
		}
		if c.mems.Empty() {
			c.mems, _ = r.nearest(g, memFiles)
		}
	}
	return c
}

func (r *treeReader) nearest(g cgroup, files []cpusetFile) (s Set, effective bool) {
	for dir := range g.ancestry() {
		for _, f := range files {
			if s, ok := r.set(path.Join(g.mount, dir, f.name)); ok && !s.Empty() {
				return s, f.effective
			}
		}
	}
	return Set{}, false
}

// memories returns the memory nodes that the kernel lets this process have:
// Mems_allowed_list of proc_pid_status(5), which is there without any cgroup file
// in sight. granted is what those tell, which may be more than is in force.
func (r *treeReader) memories(granted Set) Set {
	const file = "/proc/self/status"
	text, _ := r.text(file)
	for line := range strings.Lines(text) {
		list, ok := strings.CutPrefix(line, "Mems_allowed_list:")
		if !ok {
			continue
		}
		told, err := ParseSet(strings.TrimSpace(list))
		switch both := told.Intersect(granted); {
		case err != nil:
			r.malformed(file, "a list of memory nodes", strings.TrimSpace(list))
		case told.Empty():
		case granted.Empty():
			return told
		case both.Empty():
			r.note("taken as the memory nodes, though the cpuset has %v: those of %s, %v", granted, file, told)
			return told
		default:
			return both
		}
	}
	return granted
}
