package topology

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pinion/affinity"
)

var update = flag.Bool("update", false, "write the golden files anew")

// machine reads one of the trees that package affinity is tested with.
func machine(t *testing.T, name string) affinity.Topology {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../affinity/testdata/topology", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, part := range strings.Split(string(text), "\n-- ")[1:] {
		file, content, _ := strings.Cut(part, " --\n")
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	top, err := affinity.ReadTopology(root)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// report plans as main does.
func report(t *testing.T, top affinity.Topology, cpus, cells string) *Report {
	t.Helper()
	t.Setenv("GOMAXPROCS", "") // which would count; "" does not
	allowed := top.Online
	if !top.CPUSet.Empty() {
		allowed = allowed.Intersect(top.CPUSet)
	}
	list, err := affinity.ParseList(cpus)
	if err != nil {
		t.Fatal(err)
	}
	var mode affinity.Cells
	if err := mode.Set(cells); err != nil {
		t.Fatal(err)
	}
	r := &Report{Topology: top, Allowed: allowed, CPUs: list.String(), Cells: mode.String()}
	want := list.In(allowed)
	if r.PlanErr = top.Check(want, allowed); r.PlanErr == nil {
		r.Plan, r.PlanErr = top.Plan(want, mode)
	}
	return r
}

func TestText(t *testing.T) {
	tests := []struct{ tree, cpus, cells, golden string }{
		{"two-sockets", "all", "auto", "two-sockets"},
		{"two-sockets", "0-3", "off", "two-sockets-off"},
		{"two-sockets", "0-N:1/2", "8", "two-sockets-too-many"},
		{"two-sockets", "4-9", "auto", "two-sockets-wrong"},
		{"four-nodes", "all", "auto", "four-nodes"},
		{"four-nodes", "0-13", "2", "four-nodes-2"},
		{"sparse-nodes", "all", "auto", "sparse-nodes"},
		{"memory-only", "all", "auto", "memory-only"},
		{"no-numa", "all", "auto", "no-numa"},
		{"same-cpus", "all", "2", "same-cpus"},
		{"cgroup-v1", "all", "auto", "cgroup-v1"},
		{"cgroup-v2", "all", "auto", "cgroup-v2"},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			var b bytes.Buffer
			if err := report(t, machine(t, tt.tree), tt.cpus, tt.cells).WriteText(&b); err != nil {
				t.Fatal(err)
			}
			golden(t, tt.golden+".txt", b.Bytes())
			narrow(t, b.String(), 100)
		})
	}
}

func TestJSON(t *testing.T) {
	tests := []struct{ tree, cpus, cells, golden string }{
		{"two-sockets", "all", "auto", "two-sockets"},
		{"two-sockets", "4-9", "auto", "two-sockets-wrong"},
		{"sparse-nodes", "all", "auto", "sparse-nodes"},
		{"cgroup-v2", "all", "auto", "cgroup-v2"},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			var b bytes.Buffer
			if err := report(t, machine(t, tt.tree), tt.cpus, tt.cells).WriteJSON(&b); err != nil {
				t.Fatal(err)
			}
			golden(t, tt.golden+".json", b.Bytes())
			if !json.Valid(b.Bytes()) {
				t.Error("not JSON")
			}
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	was := strings.Split(string(want), "\n")
	for i, line := range strings.Split(string(got), "\n") {
		if i >= len(was) || line != was[i] {
			t.Errorf("%s:%d (-update writes it anew): got %q, want %q", file, i+1, line, was[min(i, len(was)-1)])
			return
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d bytes, want %d", file, len(got), len(want))
	}
}

func narrow(t *testing.T, text string, columns int) {
	t.Helper()
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); len(line) > columns || strings.TrimRight(line, " ") != line {
			t.Errorf("%d columns, or spaces at its end: %q", len(line), line)
		}
	}
}

// Firmware that deals CPUs out to the sockets by turns makes lists that no
// terminal has room for.
func TestTextOfLargeMachine(t *testing.T) {
	const cpus, nodes = 512, 8
	parse := func(format string, args ...any) affinity.Set {
		s, err := affinity.ParseSet(fmt.Sprintf(format, args...))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	all := parse("0-%d", cpus-1)
	top := affinity.Topology{Possible: all, Online: all}
	for id := range nodes {
		n := affinity.Node{ID: id, CPUs: parse("%d-%d:1/%d", id, cpus-1, nodes), MemoryBytes: 1 << 40}
		for to := range nodes {
			n.Distances = append(n.Distances, affinity.Distance{Node: to, Distance: 10 + 11*((to^id)&7)})
		}
		top.Nodes = append(top.Nodes, n)
		top.L3 = append(top.L3, n.CPUs)
	}
	for cpu := range cpus / 2 {
		top.Cores = append(top.Cores, parse("%d,%d", cpu, cpu+cpus/2))
	}
	var b bytes.Buffer
	r := report(t, top, "all", "auto")
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	narrow(t, b.String(), 110)
	if len(r.Plan) != nodes || !strings.Contains(b.String(), "\n  7     7,15,23") {
		t.Errorf("%d cells:\n%s", len(r.Plan), b.String())
	}
}

// The document has every key also when nothing is known.
func TestJSONOfNothing(t *testing.T) {
	r := Report{
		ReadErr: errors.Join(errors.New("one"), errors.New("two")),
		PlanErr: affinity.ErrEmptySet,
	}
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "nothing.json", b.Bytes())
	if strings.Contains(b.String(), "null") {
		t.Error("a list is null")
	}
	b.Reset()
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "nothing.txt", b.Bytes())
}

func TestFold(t *testing.T) {
	tests := []struct {
		text  string
		width int
		want  []string
	}{
		{"", 5, []string{""}},
		{"one two", 7, []string{"one two"}},
		{"one two", 6, []string{"one", "two"}},
		{"0,2,4,6", 4, []string{"0,2,", "4,6"}},
		{"a /very/long/path b", 5, []string{"a", "/very/long/path", "b"}},
		{"äöü äöü", 7, []string{"äöü äöü"}},
		{"   10  21", 9, []string{"   10  21"}},
	}
	for _, tt := range tests {
		if got := fold(tt.text, tt.width); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", tt.want) {
			t.Errorf("fold(%q, %d) = %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

// brokenPipe is a reader that has left.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestWriteErrors(t *testing.T) {
	r := Report{PlanErr: affinity.ErrEmptySet}
	if err := r.WriteText(brokenPipe{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("text: %v", err)
	}
	if err := r.WriteJSON(brokenPipe{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("JSON: %v", err)
	}
}
