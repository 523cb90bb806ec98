//go:build linux && numa

package guest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// cell is what a process that serves must be like.
type cell struct {
	cpus   string // the mask of all its threads
	memory string // the nodes it prefers; "" for no policy
	loops  int    // and GOMAXPROCS
}

// is wants the server to consist of exactly these cells, and looks at each from
// outside: at what the kernel says of its threads and its memory, and at its metrics.
func (p *process) is(t *testing.T, cells ...cell) {
	t.Helper()
	pids := p.pids(t)
	if len(pids) != len(cells) {
		t.Fatalf("%d processes serve, %v, want %d", len(pids), pids, len(cells))
	}
	loops, gomaxprocs := make(map[int]int), make(map[int]int)
	for _, s := range metrics(t) {
		if len(cells) > 1 && s.labels["cell"] == "supervisor" {
			continue
		}
		if _, labelled := s.labels["cell"]; labelled != (len(cells) > 1) {
			t.Fatalf("%v of %d cells: label cell", s, len(cells))
		}
		switch s.name {
		case "engine_connections":
			loops[number(t, s, "cell")]++
		case "go_sched_gomaxprocs_threads":
			gomaxprocs[number(t, s, "cell")] = int(s.value)
		}
	}
	for i, want := range cells {
		threads, pages := masks(t, pids[i], want.cpus), memory(t, pids[i], want.memory)
		t.Logf("cell %d is process %d: %s; %s; GOMAXPROCS %d; %d loops", i, pids[i], threads, pages, gomaxprocs[i], loops[i])
		if gomaxprocs[i] != want.loops || loops[i] != want.loops {
			t.Errorf("cell %d: GOMAXPROCS %d and %d loops, want %d", i, gomaxprocs[i], loops[i], want.loops)
		}
	}
}

// masks wants every thread of a process to have one mask, and returns what they have.
func masks(t *testing.T, pid int, want string) string {
	t.Helper()
	threads := make(map[string]int)
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(tasks) < 2 {
		t.Fatalf("process %d has %d threads, %v", pid, len(tasks), err)
	}
	for _, task := range tasks {
		status, err := os.ReadFile(task)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // a thread that has ended meanwhile
		}
		if err != nil {
			t.Fatal(err)
		}
		_, got, _ := strings.Cut(string(status), "\nCpus_allowed_list:\t")
		got, _, _ = strings.Cut(got, "\n")
		threads[got]++
	}
	var masks []string
	for mask, n := range threads {
		masks = append(masks, fmt.Sprintf("%d threads on CPUs %s", n, mask))
	}
	if len(threads) != 1 || threads[want] == 0 {
		t.Errorf("process %d: %v, want all on CPUs %s", pid, masks, want)
	}
	return strings.Join(masks, ", ")
}

// memory wants a process to prefer the given nodes, and to have its memory there. It
// returns what it found.
func memory(t *testing.T, pid int, want string) string {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/numa_maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	// Documentation/filesystems/proc.rst: the address, the policy, and then, among
	// others, anon=PAGES of its own and N0=PAGES for each node it has pages on.
	policy := regexp.MustCompile(`(?m)^[0-9a-f]+ ((?:default|prefer(?: \(many\))?(?:[=:|][^ \n]*)?))(?: .*)?$`)
	found := policy.FindAllStringSubmatch(string(maps), -1)
	if lines := strings.Count(string(maps), "\n"); len(found) != lines || lines == 0 {
		t.Fatalf("process %d: policies of %d of %d areas understood:\n%s", pid, len(found), lines, maps)
	}
	allowed := map[string]bool{"prefer:" + want: true, "prefer (many):" + want: true}
	if want == "" {
		allowed = map[string]bool{"default": true}
	}
	for _, m := range found {
		if !allowed[m[1]] {
			t.Errorf("process %d: memory policy %q, want nodes %q:\n%s", pid, m[1], want, m[0])
			break
		}
	}
	on := make(map[string]int)
	pages := 0
	for line := range strings.Lines(string(maps)) {
		if !strings.Contains(line, " anon=") || strings.Contains(line, " file=") {
			continue // the program itself is wherever it was read to
		}
		for _, m := range regexp.MustCompile(` N(\d+)=(\d+)`).FindAllStringSubmatch(line, -1) {
			n, err := strconv.Atoi(m[2])
			if err != nil {
				t.Fatal(err)
			}
			on[m[1]] += n
			pages += n
		}
	}
	if want != "" && (pages < 500 || on[want]*10 < pages*9) {
		t.Errorf("process %d: pages by node %v, want them on node %s", pid, on, want)
	}
	return fmt.Sprintf("memory policy %s of all %d areas, pages by node %v", found[0][1], len(found), on)
}

// fact reads a file of sysfs that holds one line.
func fact(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// TestMachine shows the machine that the other tests stand on.
func TestMachine(t *testing.T) {
	const system = "/sys/devices/system/"
	if online := fact(t, system+"cpu/online"); online != "0-7" {
		t.Errorf("CPUs %s, want 0-7", online)
	}
	for _, pattern := range []string{
		"node/online", "node/has_cpu", "node/has_memory", "node/node*/cpulist", "node/node*/distance",
		"cpu/cpu[07]/topology/core_cpus_list", "cpu/cpu[07]/cache/index3/shared_cpu_list",
	} {
		files, err := filepath.Glob(system + pattern)
		if err != nil || len(files) == 0 {
			t.Errorf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			t.Logf("%s: %s", strings.TrimPrefix(file, system), fact(t, file))
		}
	}
}
