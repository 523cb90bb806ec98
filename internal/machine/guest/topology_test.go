//go:build linux && numa

package guest

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// report is what server topology -json prints, as far as it is looked at here.
type report struct {
	CPUs struct{ Possible, Online, Allowed string }
	L3   []string
	// Nodes are the online ones.
	Nodes []struct {
		ID        int
		CPUs      string
		Memory    uint64                         `json:"memory_bytes"`
		Distances []struct{ Node, Distance int } // to each node
	}
	Plan struct {
		Cells []struct {
			CPUs       string
			Memory     string `json:"memory_nodes"`
			Loops      int
			GOMAXPROCS int
		}
	}
}

func topology(t *testing.T, args ...string) (r report) {
	t.Helper()
	out, err := exec.Command("/bin/server", append([]string{"topology", "-json"}, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v in:\n%s", err, out)
	}
	return r
}

// TestTopologyCommand compares what the server says of this machine, whichever it is,
// with what the kernel says.
func TestTopologyCommand(t *testing.T) {
	r := topology(t)
	const system = "/sys/devices/system/"
	if cpus := r.CPUs; cpus.Possible != fact(t, system+"cpu/possible") || cpus.Online != fact(t, system+"cpu/online") || cpus.Allowed != cpus.Online {
		t.Errorf("CPUs %+v", cpus)
	}
	if want := fact(t, system+"cpu/cpu0/cache/index3/shared_cpu_list"); len(r.L3) == 0 || r.L3[0] != want {
		t.Errorf("L3 domains %v, want %s first", r.L3, want)
	}
	if last := fmt.Sprintf("0-%d", len(r.Nodes)-1); last != fact(t, system+"node/online") {
		t.Errorf("nodes %s", last)
	}
	for _, n := range r.Nodes {
		dir := system + "node/node" + strconv.Itoa(n.ID)
		if want := fact(t, dir+"/cpulist"); n.CPUs != want {
			t.Errorf("node %d: CPUs %s, want %s", n.ID, n.CPUs, want)
		}
		var distances []string
		for _, d := range n.Distances {
			distances = append(distances, strconv.Itoa(d.Distance))
		}
		if want := fact(t, dir+"/distance"); strings.Join(distances, " ") != want {
			t.Errorf("node %d: distances %v, want %s", n.ID, distances, want)
		}
		// The line is "Node 0 MemTotal:  347988 kB".
		_, total, _ := strings.Cut(fact(t, dir+"/meminfo"), "MemTotal:")
		total, _, _ = strings.Cut(strings.TrimSpace(total), " kB")
		if want, err := strconv.ParseUint(total, 10, 64); err != nil || n.Memory != want<<10 {
			t.Errorf("node %d: %d bytes, want %s KiB", n.ID, n.Memory, total)
		}
	}

	text, err := exec.Command("/bin/server", "topology").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range r.Nodes {
		if !strings.Contains(string(text), n.CPUs) {
			t.Errorf("no CPUs %s in the table:\n%s", n.CPUs, text)
		}
	}
	t.Logf("\n%s", text)
}

// foretold wants server topology with args to plan exactly these cells.
func foretold(t *testing.T, args []string, cells []cell) {
	t.Helper()
	plan := topology(t, args...).Plan.Cells
	if len(plan) != len(cells) {
		t.Fatalf("%d cells planned, want %d", len(plan), len(cells))
	}
	for i, c := range plan {
		if got := (cell{c.CPUs, c.Memory, c.GOMAXPROCS}); got != cells[i] || c.Loops != c.GOMAXPROCS {
			t.Errorf("cell %d: planned is %+v with %d loops, want %+v", i, got, c.Loops, cells[i])
		}
	}
}
