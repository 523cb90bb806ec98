package affinity

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// cgroup is where this process is in a mounted hierarchy of control groups.
type cgroup struct {
	v2          bool
	controllers []string // version 1: mount options, the controllers among them
	mount       string   // where the hierarchy is mounted
	dir         string   // the process's own group below mount; "/" is mount itself
}

// may reports whether the hierarchy may have the controller. Version 2 says
// so for each directory, by the files that are there.
func (g cgroup) may(controller string) bool {
	return g.v2 || slices.Contains(g.controllers, controller)
}

// ancestry returns the process's own group and those above it, upwards, as
// far as the mount shows them.
func (g cgroup) ancestry() iter.Seq[string] {
	return func(yield func(string) bool) {
		for dir := g.dir; ; dir = path.Dir(dir) {
			if !yield(dir) || dir == "/" {
				return
			}
		}
	}
}

// quota is CPU time over real time, in CPUs, and the file that says so. The
// zero value is no limit.
type quota struct {
	cpus float64
	file string
}

// tightestQuota returns the smallest limit on this process's cgroup and on
// all its ancestors that can be seen from here, version 1 and 2 alike, since
// the kernel enforces each of them. An error names limits that could not be
// read; the quota is the tightest of the others.
func tightestQuota(root string) (quota, error) {
	groups, err := cgroups(root)
	q, errQuota := quotaOf(root, groups)
	return q, errors.Join(err, errQuota)
}

func quotaOf(root string, groups []cgroup) (quota, error) {
	var tightest quota
	var errs []error
	for _, g := range groups {
		if !g.may("cpu") {
			continue
		}
		for dir := range g.ancestry() {
			q, err := g.quota(root, dir)
			errs = append(errs, err)
			if q.cpus > 0 && (tightest.cpus == 0 || q.cpus < tightest.cpus) {
				tightest = q
			}
		}
	}
	return tightest, errors.Join(errs...)
}

// quota reads the limit set on one directory. A hierarchy's root and a group
// whose parent does not delegate the controller have no file, and no limit.
func (g cgroup) quota(root, dir string) (quota, error) {
	file := "cpu.cfs_quota_us"
	if g.v2 {
		file = "cpu.max"
	}
	file = path.Join(g.mount, dir, file)
	text, err := readField(root, file)
	if errors.Is(err, fs.ErrNotExist) {
		return quota{}, nil
	}
	if err != nil {
		return quota{}, err
	}
	// Version 2 has both numbers in one file, "max 100000" without a limit
	// (Documentation/admin-guide/cgroup-v2.rst, cpu.max). Version 1 has two
	// files, and -1 (Documentation/scheduler/sched-bwc.rst).
	limit, period, none := text, "", "-1"
	if g.v2 {
		limit, period, _ = strings.Cut(text, " ")
		none = "max"
	}
	if limit == none {
		return quota{}, nil
	}
	if !g.v2 {
		if period, err = readField(root, path.Join(g.mount, dir, "cpu.cfs_period_us")); err != nil {
			return quota{}, err
		}
	}
	l, errLimit := strconv.ParseInt(limit, 10, 64)
	p, errPeriod := strconv.ParseInt(period, 10, 64)
	if errLimit != nil || errPeriod != nil || l <= 0 || p <= 0 {
		return quota{}, fmt.Errorf("%s: not a CPU quota: %q of period %q", file, limit, period)
	}
	return quota{cpus: float64(l) / float64(p), file: file}, nil
}

// cgroups finds where this process is in each mounted hierarchy. A system
// without cgroups has none. On an error the groups are those of the mounts
// before it.
func cgroups(root string) ([]cgroup, error) {
	membership, err := readProc(root, "/proc/self/cgroup")
	if err != nil || membership == "" {
		return nil, err
	}
	mounts, err := readProc(root, "/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}

	// One line a hierarchy, "id:controllers:path" (cgroups(7)). Version 2 has
	// id 0 and no controllers here.
	v1, v2 := map[string]string{}, "" // version 1 by controller
	for line := range strings.Lines(membership) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(f) != 3 || !strings.HasPrefix(f[2], "/"):
			return nil, fmt.Errorf("/proc/self/cgroup: not a cgroup: %q", line)
		case f[0] == "0" && f[1] == "":
			v2 = f[2]
		default:
			for controller := range strings.SplitSeq(f[1], ",") {
				v1[controller] = f[2]
			}
		}
	}

	var found []cgroup
	for line := range strings.Lines(mounts) {
		m, err := parseMount(line)
		if err != nil {
			return found, err
		}
		g := cgroup{v2: m.fstype == "cgroup2", controllers: m.options, mount: m.point}
		group := v2
		switch {
		case g.v2:
		case m.fstype == "cgroup":
			// A hierarchy has one or more controllers, with one path.
			i := slices.IndexFunc(m.options, func(option string) bool { return v1[option] != "" })
			if i < 0 {
				continue
			}
			group = v1[m.options[i]]
		default:
			continue
		}
		if dir, ok := below(m.root, group); ok {
			g.dir = dir
			found = append(found, g)
		}
	}
	return found, nil
}

// below returns the path of group as seen from a mount that shows the
// hierarchy from root on. A group outside, as "/../other" is outside a cgroup
// namespace, cannot be reached through that mount.
func below(root, group string) (dir string, ok bool) {
	rest, ok := strings.CutPrefix(group, strings.TrimSuffix(root, "/"))
	switch {
	case !ok || group == "":
		return "", false
	case rest == "":
		return "/", true
	case rest[0] != '/' || rest == "/.." || strings.HasPrefix(rest, "/../"):
		return "", false
	}
	return path.Clean(rest), true
}

type mount struct {
	root    string // the directory of the file system that is mounted
	point   string // where
	fstype  string
	options []string // of the file system
}

// parseMount reads a line of /proc/self/mountinfo (proc_pid_mountinfo(5)):
//
//	36 35 98:0 /root /point rw,noatime [optional fields] - fstype source options
func parseMount(line string) (mount, error) {
	f := strings.Fields(line)
	sep := slices.Index(f, "-")
	if sep < 6 || len(f) < sep+3 {
		return mount{}, fmt.Errorf("/proc/self/mountinfo: not a mount: %q", line)
	}
	m := mount{root: unescape(f[3]), point: unescape(f[4]), fstype: f[sep+1]}
	if len(f) > sep+3 { // a source may be empty
		m.options = strings.Split(f[len(f)-1], ",")
	}
	return m, nil
}

// unescape undoes mountinfo's octal escapes of space, tab, newline and
// backslash.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// readProc returns "" for a file that is not there: no procfs, or a kernel
// without cgroups.
func readProc(root, file string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cgroup of this process: %w", err)
	}
	return string(text), nil
}

// readField reads a small file of one line.
func readField(root, file string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return "", fmt.Errorf("cgroup limit: %w", err)
	}
	return strings.TrimSuffix(string(text), "\n"), nil
}
