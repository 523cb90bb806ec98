//go:build linux && numa

package machine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// scenario is a machine, and the tests of package guest that must pass on it.
type scenario struct {
	Machine
	tests []string
}

func scenarios() []scenario {
	return []scenario{
		{
			Machine{Name: "two-nodes", Sockets: 2, Threads: 1, Nodes: []Node{{"0-3", 384}, {"4-7", 384}}},
			[]string{
				"TestMachine", "TestTopologyCommand", "TestCellsOff", "TestOneNode", "TestPartsOfNodes",
				"TestFreeCPUs", "TestTwoCells", "TestSteerCPUOneProcess", "TestKilledSupervisor",
			},
		},
		{ // the rest of what two nodes are for
			Machine{Name: "two-nodes-smt", Sockets: 2, Threads: 2, Nodes: []Node{{"0-3", 384}, {"4-7", 384}}},
			[]string{
				"TestMachine", "TestTopologyCommand", "TestPartsOfANode", "TestSteerCPU", "TestSteerOff",
				"TestFailedStart", "TestWrongInput", "TestOfflineCPU", "TestQuota", "TestCPUSet",
			},
		},
		{
			Machine{
				Name: "four-nodes", Sockets: 4, Threads: 2,
				Nodes: []Node{{"0-1", 192}, {"2-3", 192}, {"4-5", 192}, {"6-7", 192}},
				// Nodes that are neighbours by number are not by distance.
				Distance: []Distance{{0, 1, 30}, {0, 2, 12}, {0, 3, 30}, {1, 2, 30}, {1, 3, 12}, {2, 3, 30}},
			},
			[]string{"TestMachine", "TestTopologyCommand", "TestFourCells", "TestMergedCells"},
		},
		{
			Machine{
				Name: "memory-node", Sockets: 2, Threads: 1,
				// The memory of node 1's CPUs is on a node of its own.
				Nodes:    []Node{{"0-3", 384}, {"4-7", 0}, {"", 384}},
				Distance: []Distance{{0, 1, 20}, {0, 2, 30}, {1, 2, 15}},
			},
			[]string{"TestMachine", "TestTopologyCommand", "TestMemoryNode"},
		},
	}
}

// Times are generous: all CPUs of a machine share those of a host that has other
// work too.
const (
	buildTime = 10 * time.Minute
	bootTime  = 2 * time.Minute // to the first test, and from the last one
	testTime  = 8 * time.Minute // all tests of a machine
)

// end is what the guest prints after all else, if all its tests passed.
const end = "guest: tests ended with status 0"

// TestMachines boots each machine and wants each of its tests to say that it passed.
func TestMachines(t *testing.T) {
	if err := CheckEmulator(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), buildTime)
	defer cancel()
	kernel, err := Kernel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	guest, server := filepath.Join(dir, "guest"), filepath.Join(dir, "server")
	run(ctx, t, "go", "test", "-c", "-tags", "numa", "-ldflags", "-s -w", "-o", guest, "pinion/internal/machine/guest")
	run(ctx, t, "go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=numa", "-o", server, "pinion")
	needed := strings.Fields(run(ctx, t, guest, "-test.list", "."))
	initramfs := filepath.Join(dir, "initramfs")
	if err := pack(initramfs, map[string]string{"bin/guest": guest, "bin/server": server}); err != nil {
		t.Fatal(err)
	}

	for _, s := range scenarios() {
		needed = slices.DeleteFunc(needed, func(test string) bool { return slices.Contains(s.tests, test) })
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel() // a machine waits for some of its time, and another can use that
			s.run(t, kernel, initramfs)
		})
	}
	if len(needed) > 0 {
		t.Errorf("no machine runs %v", needed)
	}
}

// run boots the machine, shows what it prints, and judges it.
func (s scenario) run(t *testing.T, kernel, initramfs string) {
	ctx, cancel := context.WithTimeout(t.Context(), bootTime+testTime)
	defer cancel()
	args := []string{
		"-test.v", "-test.timeout=" + testTime.String(), "-test.run=^(" + strings.Join(s.tests, "|") + ")$",
	}
	pass := regexp.MustCompile(`^--- PASS: (\w+) `)
	var passed []string
	ended, start := false, time.Now()
	err := s.Run(ctx, kernel, initramfs, "/bin/guest", args, func(line string) {
		fmt.Printf("%s: %s\n", s.Name, line)
		if m := pass.FindStringSubmatch(line); m != nil {
			passed = append(passed, m[1])
		}
		ended = ended || line == end
	})
	if err != nil {
		t.Error(err)
	}
	for _, test := range s.tests {
		if !slices.Contains(passed, test) {
			t.Errorf("%s did not pass", test)
		}
	}
	if !ended {
		t.Errorf("the guest did not end with %q", end)
	}
	t.Logf("%d of %d tests passed in %v", len(passed), len(s.tests), time.Since(start).Round(100*time.Millisecond))
}

// run runs a program for the machine and returns what it printed.
func run(ctx context.Context, t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}

// pack makes an initramfs of programs, by the names they get in it.
func pack(file string, programs map[string]string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	a := NewArchive(f)
	// The kernel opens the console before init runs.
	for _, dir := range []string{"bin", "dev", "proc", "sys", "tmp"} {
		a.Dir(dir)
	}
	a.Device("dev/console", 5, 1)
	for name, from := range programs {
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		a.File(name, 0o755, content)
	}
	if err := a.Close(); err != nil {
		return err
	}
	return f.Close()
}
