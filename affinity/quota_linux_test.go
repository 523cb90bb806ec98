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

// TestApplyRealQuota runs processes in a cgroup of 1.5 CPUs that it makes, in
// version 2 or 1: a host gives its cpu controller to one of them. Trees in
// testdata stand in for both where it may not.
func TestApplyRealQuota(t *testing.T) {
	unsetenv(t)
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	if allowed.Len() < 2 {
		skip(t, "1.5 CPUs limit nothing on one CPU; allowed here: %v", allowed)
	}
	var refused []error
	for _, version := range []string{"v2", "v1"} {
		t.Run(version, func(t *testing.T) {
			dir, limit, err := limitedCgroup(t, version == "v2")
			if err != nil {
				refused = append(refused, err)
				t.Skip(err)
			}
			applyIn(t, dir, allowed, 1, fmt.Sprintf("cgroup quota 1.5 CPUs at %s", limit))
			applyIn(t, dir, allowed, 0.5,
				fmt.Sprintf("cgroup quota 1.5 CPUs at %s, 0.75 of them for this process", limit))
		})
	}
	if len(refused) == 2 {
		skip(t, "no cgroup can be limited here, only the trees in testdata were tried: %v", errors.Join(refused...))
	}
}

// applyIn runs a process in the cgroup at dir, and wants GOMAXPROCS 1.
func applyIn(t *testing.T, dir string, cpus Set, share float64, reason string) {
	t.Helper()
	// The shell enters the group before the program starts.
	got, err := process{
		binary: "/bin/sh",
		role:   "apply",
		args: []string{
			"-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, dir,
			os.Args[0], cpus.String(), fmt.Sprint(share),
		},
	}.run(t)
	if err != nil {
		t.Fatal(err, got)
	}
	t.Log(got["decision"])
	want := fmt.Sprintf(`cpus=%v gomaxprocs=1 reason=%q`, cpus, reason)
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
// It returns its directory and the file of the limit, or why no hierarchy of
// this version lets it.
func limitedCgroup(t *testing.T, v2 bool) (dir, limit string, err error) {
	t.Helper()
	groups, err := cgroups("/")
	if err != nil {
		t.Fatal(err)
	}
	var refused []error
	for _, g := range groups {
		if g.v2 != v2 || !g.may("cpu") {
			continue
		}
		// Upwards, because in version 2 a group that has processes, as ours,
		// has no controllers for groups below, unless it is the root.
		for at := range g.ancestry() {
			limit, err := g.limitBelow(t, at)
			if err == nil {
				return path.Dir(limit), limit, nil
			}
			refused = append(refused, err)
		}
	}
	if len(refused) == 0 {
		return "", "", errors.New("no hierarchy of this version has the cpu controller")
	}
	return "", "", errors.Join(refused...)
}

// limitBelow makes a limited group below the one at dir.
func (g cgroup) limitBelow(t *testing.T, dir string) (limit string, err error) {
	t.Helper()
	parent := path.Join(g.mount, dir)
	file, text := "cpu.cfs_quota_us", "150000"
	if g.v2 {
		file, text = "cpu.max", "150000 100000"
		if err := delegateCPU(t, parent); err != nil {
			return "", err
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

// delegateCPU gives groups below a version 2 group the cpu controller, if they
// do not have it, until the test ends.
func delegateCPU(t *testing.T, dir string) error {
	t.Helper()
	below := path.Join(dir, "cgroup.subtree_control")
	for _, file := range []string{path.Join(dir, "cgroup.controllers"), below} {
		has, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		cpu := slices.Contains(strings.Fields(string(has)), "cpu")
		switch {
		case file == below && cpu:
			return nil
		case file != below && !cpu:
			return fmt.Errorf("%s: no cpu controller, only %q", file, has)
		}
	}
	if err := os.WriteFile(below, []byte("+cpu"), 0); err != nil {
		return err
	}
	t.Cleanup(func() {
		if err := os.WriteFile(below, []byte("-cpu"), 0); err != nil {
			t.Log(err) // somebody began to use it
		}
	})
	return nil
}
