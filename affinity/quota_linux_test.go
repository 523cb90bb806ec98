package affinity

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestApplyRealQuota runs a process in a cgroup of 1.5 CPUs that it makes
// below its own. Trees in testdata stand in where it may not.
func TestApplyRealQuota(t *testing.T) {
	unsetenv(t)
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	if allowed.Len() < 2 {
		skip(t, "1.5 CPUs limit nothing on one CPU; allowed here: %v", allowed)
	}
	dir, limit := limitedCgroup(t)
	// The shell enters the group before the program starts.
	got, err := process{
		binary: "/bin/sh",
		role:   "apply",
		args:   []string{"-c", `echo $$ > "$0/cgroup.procs" && exec "$1" "$2"`, dir, executable(), allowed.String()},
	}.run(t)
	if err != nil {
		t.Fatal(err, got)
	}
	want := fmt.Sprintf(`cpus=%v gomaxprocs=1 reason="cgroup quota 1.5 CPUs at %s"`, allowed, limit)
	if d := got["decision"]; len(d) != 1 || d[0] != want {
		t.Errorf("got  %q\nwant %q", d, want)
	}
	if n := got["gomaxprocs"]; len(n) != 1 || n[0] != "1" {
		t.Errorf("GOMAXPROCS is %q, want 1", n)
	}
}

func TestApplyMask(t *testing.T) {
	cpu, _ := twoCPUs(t)
	unsetenv(t)
	got, err := process{role: "apply", args: []string{cpu}}.run(t)
	if err != nil {
		t.Fatal(err, got)
	}
	if n := got["gomaxprocs"]; len(n) != 1 || n[0] != "1" {
		t.Errorf("GOMAXPROCS is %q, want 1: %v", n, got)
	}
}

func TestApplyEnvironment(t *testing.T) {
	_, _ = twoCPUs(t)
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	got, err := process{
		role: "apply", args: []string{allowed.String()}, env: []string{"GOMAXPROCS=1"},
	}.run(t)
	if err != nil {
		t.Fatal(err, got)
	}
	if d := got["decision"]; len(d) != 1 || !strings.Contains(d[0], "in the environment") {
		t.Errorf("decision %q", d)
	}
	if n := got["gomaxprocs"]; len(n) != 1 || n[0] != "1" {
		t.Errorf("GOMAXPROCS is %q, want 1", n)
	}
}

// limitedCgroup makes a cgroup limited to 1.5 CPUs and removes it in the end.
// It returns its directory and the file of the limit, and skips the test,
// with the reasons, where no hierarchy lets it.
func limitedCgroup(t *testing.T) (dir, limit string) {
	t.Helper()
	groups, err := cgroups("/")
	if err != nil {
		t.Fatal(err)
	}
	var refused []error
	for _, g := range groups {
		if !g.may("cpu") {
			continue
		}
		// Upwards, because in version 2 a group that has processes, as ours,
		// has no controllers for groups below, unless it is the root.
		for at := range g.ancestry() {
			limit, err := g.limitBelow(t, at)
			if err == nil {
				return path.Dir(limit), limit
			}
			refused = append(refused, err)
		}
	}
	skip(t, "no cgroup can be limited here, only the trees in testdata were tried: %v", errors.Join(refused...))
	return "", ""
}

// limitBelow makes a limited group below the one at dir.
func (g cgroup) limitBelow(t *testing.T, dir string) (limit string, err error) {
	t.Helper()
	parent := path.Join(g.mount, dir)
	file, text := "cpu.cfs_quota_us", "150000"
	if g.v2 {
		file, text = "cpu.max", "150000 100000"
		has, err := os.ReadFile(path.Join(parent, "cgroup.subtree_control"))
		if err != nil {
			return "", err
		}
		if !slices.Contains(strings.Fields(string(has)), "cpu") {
			return "", fmt.Errorf("%s: no cpu controller for groups below, only %q", parent, has)
		}
	}
	child, err := os.MkdirTemp(parent, "affinity-test-")
	if err != nil {
		return "", err
	}
	t.Cleanup(func() {
		if err := os.Remove(child); err != nil {
			t.Error(err)
		}
	})
	limit = path.Join(child, file)
	return limit, os.WriteFile(limit, []byte(text), 0)
}
