package affinity

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// memoryNode returns a node that this process may prefer. There is one on
// every kernel with NUMA, and there a policy can be seen also if it is the
// only one.
func memoryNode(t *testing.T) string {
	t.Helper()
	nodes, err := os.ReadFile("/sys/devices/system/node/has_memory")
	if err != nil {
		skip(t, "no node with memory is known here: %v", err)
	}
	node, ok := set(t, string(nodes)).Min()
	if !ok {
		skip(t, "no node has memory here")
	}
	if err := MemoryPolicy(SetOf(node)); err != nil {
		skip(t, "memory policies cannot be set here: %v", err)
	}
	return fmt.Sprint(node)
}

// TestMemoryPolicy: what is asked is what a placement will do, and nothing stays.
func TestMemoryPolicy(t *testing.T) {
	node := set(t, memoryNode(t))
	far := set(t, "1023") // the last that a kernel can have
	if err := MemoryPolicy(far); !errors.Is(err, unix.EINVAL) {
		t.Errorf("memory of node 1023: %v, want EINVAL", err)
	}
	for _, nodes := range []Set{{}, node, node.Union(far)} {
		if err := MemoryPolicy(nodes); err != nil {
			t.Errorf("memory of nodes %v: %v", nodes, err)
		}
	}
	// Each thread that may have been tried on.
	threads := lines{}
	files, err := filepath.Glob("/proc/self/task/*/numa_maps")
	if err != nil || len(files) == 0 {
		skip(t, "the kernel shows no policies")
	}
	for _, file := range files {
		maps, err := os.ReadFile(file)
		if fields := strings.Fields(string(maps)); err == nil && len(fields) > 1 { // or the thread has ended
			threads["memory"] = append(threads["memory"], fields[1])
		}
	}
	threads.wantMemory(t, "default")
}

// wantMemory looks at the policy of every thread, where the kernel has one.
func (l lines) wantMemory(t *testing.T, policy string) {
	t.Helper()
	if len(l["memory"]) == 0 {
		if _, err := os.Stat("/proc/self/numa_maps"); err == nil {
			t.Error("no memory policy reported")
		}
	}
	for _, m := range l["memory"] {
		if m != policy {
			t.Errorf("memory policies %q, want %s for every thread", l["memory"], policy)
			return
		}
	}
}

func TestReexecSetsTheMemoryPolicy(t *testing.T) {
	cpu, _ := twoCPUs(t)
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	node := memoryNode(t)
	// With the mask as it is, the policy alone is reason to restart.
	for _, cpus := range []string{cpu, allowed.String()} {
		got, err := process{role: "reexec", args: []string{cpus + "@" + node}}.run(t)
		if err != nil {
			t.Fatal(err, got)
		}
		got.wantMasks(t, cpus)
		got.wantMemory(t, "prefer:"+node)
		if len(got["start"]) != 2 {
			t.Errorf("on CPUs %s: started %d times, want 2", cpus, len(got["start"]))
		}
		if g := got["guard"]; len(g) != 2 || g[0] != "" || g[1] != cpus+"@"+node {
			t.Errorf("on CPUs %s: guards %q, want the placement in the second start", cpus, g)
		}
	}
}

// A policy that is not there after the restart must not restart again.
func TestReexecGuardsTheMemoryPolicy(t *testing.T) {
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	where := Placement{CPUs: allowed, Memory: set(t, memoryNode(t))}
	got, err := process{
		role: "reexec", args: []string{where.String()}, env: []string{guardEnv + "=" + where.String()},
	}.run(t)
	if err == nil || len(got["start"]) != 1 || len(got["error"]) != 1 {
		t.Errorf("%v, %v; want one start and an error", got, err)
	}
}

// A policy that cannot be had is an error, and leaves the thread as it was.
func TestReexecToMemoryThatIsNotThere(t *testing.T) {
	cpu, _ := twoCPUs(t)
	memoryNode(t)
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	// The goroutine stays on its thread, which is where Reexec works.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = Reexec(Placement{CPUs: set(t, cpu), Memory: set(t, "1023")})
	if !errors.Is(err, unix.EINVAL) {
		t.Errorf("got %v, want EINVAL", err)
	}
	mask, err := threadMask(0)
	if err != nil || !mask.Equal(allowed) {
		t.Errorf("mask %v, %v, want %v as before", mask, err, allowed)
	}
	policy, err := threadPolicy()
	if err != nil || policy.mode != unix.MPOL_DEFAULT {
		t.Errorf("policy %v, %v, want the default as before", policy, err)
	}
}

func TestPreferSeveralNodes(t *testing.T) {
	node := memoryNode(t)
	if err := onThread(func() error {
		nodes := set(t, node).Union(set(t, "1000"))
		err := prefer(nodes)
		policy, errGet := threadPolicy()
		if err == nil && errGet == nil && !policy.prefers(nodes) {
			err = fmt.Errorf("policy %+v does not prefer %v", policy, nodes)
		}
		return errors.Join(err, errGet)
	}); err != nil {
		t.Error(err)
	}
}
