package affinity

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

const (
	sysCPU  = "/sys/devices/system/cpu"
	sysNode = "/sys/devices/system/node"
)

// ReadTopology reads sysfs, procfs and the cgroup mounts below root, which is
// "/" on a live system
// (Documentation/ABI/stable/sysfs-devices-node, sysfs-devices-system-cpu). It
// works without any of them, as far as the others tell.
//
// The error names each file that could not be read, or whose content cannot
// be right, and that content. The Topology follows from the other files then
// and may be used, unless there is no CPU in it.
func ReadTopology(root string) (Topology, error) {
	r := &treeReader{root: root}
	groups, err := cgroups(root)
	r.errs = append(r.errs, err)
	limit, err := quotaOf(root, groups)
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("CPU quota: %w", err))
	}
	granted := r.cpusetOf(groups)
	granted.mems = r.memories(granted.mems)

	t := Topology{CPUSet: granted.cpus, MemSet: granted.mems, Quota: limit.cpus, QuotaFrom: limit.file}
	t.Possible, t.Online = r.cpus(granted)
	if t.Online.Empty() {
		r.errs = append(r.errs, fmt.Errorf("no online CPU below %s: %w", root, fs.ErrNotExist))
	}
	t.Nodes = r.nodes(t.Online)
	t.Cores = r.cores(t.Online)
	t.L3 = r.caches(t.Online)
	t.Notes = r.notes
	if err := errors.Join(r.errs...); err != nil {
		return t, fmt.Errorf("topology: %w", err)
	}
	return t, nil
}

func (r *treeReader) cpus(granted cpuset) (possible, online Set) {
	online, _ = r.set(sysCPU + "/online")
	if online.Empty() {
		if online = r.running(); !online.Empty() {
			r.note("%s/online tells nothing: the online CPUs are those of /proc/stat", sysCPU)
		}
	}
	// Inside a container the file may be made up (lxcfs counts from 0),
	// while the cpuset is the kernel's.
	if extra := granted.cpus.Difference(online); granted.effective && !extra.Empty() {
		r.note("taken as online, since the effective cpuset has them and %s/online not: CPUs %v", sysCPU, extra)
		online = online.Union(extra)
	}
	possible, ok := r.set(sysCPU + "/possible")
	switch extra := online.Difference(possible); {
	case !ok || possible.Empty():
		r.note("%s/possible tells nothing: no CPUs but those online are known", sysCPU)
	case !extra.Empty():
		r.note("online and not in %s/possible: CPUs %v", sysCPU, extra)
	}
	return possible.Union(online), online
}

// running returns the CPUs that /proc/stat has a line for: the online ones
// (proc_stat(5)).
func (r *treeReader) running() Set {
	text, _ := r.text("/proc/stat")
	var s Set
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, " ")
		digits, ok := strings.CutPrefix(name, "cpu")
		if n, reason := parseNumber(digits); ok && reason == "" && n <= MaxCPU {
			s.addRange(int(n), int(n))
		}
	}
	return s
}

// cores groups CPUs by physical core.
func (r *treeReader) cores(online Set) []Set {
	var cores []Set
	var untold, odd Set
	rest := online
	for cpu := range online.All() {
		if !rest.Contains(cpu) { // a sibling of one before
			continue
		}
		self := SetOf(cpu)
		dir := path.Join(sysCPU, "cpu"+strconv.Itoa(cpu), "topology")
		// The older name is still there, the newer one came with 5.3.
		siblings, ok := r.set(dir + "/core_cpus_list")
		if !ok {
			siblings, ok = r.set(dir + "/thread_siblings_list")
		}
		siblings = siblings.Intersect(online)
		switch {
		case !ok:
			untold = untold.Union(self)
		case !siblings.Contains(cpu) || !siblings.Difference(rest).Empty():
			odd = odd.Union(self)
		}
		core := siblings.Intersect(rest).Union(self)
		cores = append(cores, core)
		rest = rest.Difference(core)
	}
	if !untold.Empty() {
		r.note("taken as a core each, since no SMT siblings are told: CPUs %v", untold)
	}
	if !odd.Empty() {
		r.note("taken without the CPUs of other cores, since their SMT siblings contradict each other: CPUs %v", odd)
	}
	return cores
}

// caches groups CPUs by the largest cache they share. A CPU without a third
// level is in no group.
func (r *treeReader) caches(online Set) []Set {
	var caches []Set
	rest := online
	for cpu := range online.All() {
		if !rest.Contains(cpu) {
			continue
		}
		shared := r.lastLevel(cpu).Intersect(rest)
		if shared.Empty() {
			continue
		}
		shared = shared.Union(SetOf(cpu))
		caches = append(caches, shared)
		rest = rest.Difference(shared)
	}
	return caches
}

// lastLevel returns the CPUs with which cpu shares its cache of the highest
// level, if that is the third or above.
func (r *treeReader) lastLevel(cpu int) Set {
	dir := path.Join(sysCPU, "cpu"+strconv.Itoa(cpu), "cache")
	var last Set
	highest := 3
	for i := range r.numbered(dir, "index").All() {
		index := path.Join(dir, "index"+strconv.Itoa(i))
		level, ok := r.number(index + "/level")
		if !ok || level < highest {
			continue
		}
		if shared, ok := r.set(index + "/shared_cpu_list"); ok {
			highest, last = level, shared
		}
	}
	return last
}
