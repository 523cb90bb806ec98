package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pinion/bench/record"
	"pinion/bench/scenario"
)

// TestInterval has the ranks by hand: of 15 values, the 3rd and the 13th hold the median
// with a probability of 1 - 2·(1+15+105)/2^15 = 0.9926; the 4th and the 12th only 0.965.
func TestInterval(t *testing.T) {
	var ratios []float64
	for i := range 15 {
		ratios = append(ratios, float64(15-i))
	}
	if median, low, high := interval(ratios); median != 8 || low != 3 || high != 13 {
		t.Errorf("got %v, %v to %v", median, low, high)
	}
	// Eight: minimum and maximum, 1 - 2/2^8 = 0.992.
	if median, low, high := interval([]float64{1, 2, 3, 4, 5, 6, 7, 8}); median != 4.5 || low != 1 || high != 8 {
		t.Errorf("got %v, %v to %v", median, low, high)
	}
}

func TestTable(t *testing.T) {
	of := func(name string, factor ...float64) outcome {
		o := outcome{Scenario: scenario.Scenario{Scenario: record.Scenario{Name: name, Conns: []int{64}}}}
		for i, f := range factor {
			before := 10 + float64(i) // the host drifts, ratios do not
			o.before, o.after = append(o.before, before), append(o.after, before*f)
		}
		return o
	}
	var b strings.Builder
	table(&b, "v1", []outcome{
		of("ping", 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9),
		of("users", 1.1, 1.1, 1.2, 1.1, 1.1, 1.3, 1.1, 1.1),
		of("sleep", 0.9, 1.2, 0.9, 1.2, 0.9, 1.2, 0.9, 1.2),
		of("slight", 1.002, 1.002, 1.002, 1.002, 1.002, 1.002, 1.002, 1.002),
		of("few", 1.1, 1.1),
	})
	for _, want := range []string{
		"13.50 µs   12.15 µs  0.900   0.900 to 0.900  faster by 10.0 %",
		"1.100   1.100 to 1.300  SLOWER by 10.0 %",
		"1.050   0.900 to 1.200  no difference shown",
		"less than 1 % apart", "2 pairs are too few",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestQuestions(t *testing.T) {
	var names []string
	s := &side{product: scenario.Subject{Binary: "server"}, engine: scenario.Subject{Binary: "engine"}}
	all, err := questions("/api/users?ids=1")
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range all {
		names = append(names, q.Name+" "+q.of(s).Binary)
	}
	if got := strings.Join(names, ", "); got != "ping server, users server, sleep engine" {
		t.Error(got)
	}
}

// TestCheckout lays out the first commit of a repository with two.
func TestCheckout(t *testing.T) {
	root, tree := t.TempDir(), filepath.Join(t.TempDir(), "ref")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	git("init", "--quiet")
	for _, text := range []string{"first", "second"} {
		if err := os.WriteFile(filepath.Join(root, "file"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", "file")
		git("commit", "--quiet", "-m", text)
	}
	remove, err := checkout(t.Context(), root, "HEAD~1", tree)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(tree, "file")); err != nil || string(text) != "first" {
		t.Errorf("got %q, %v", text, err)
	}
	remove()
	if _, err := os.Stat(tree); !os.IsNotExist(err) {
		t.Errorf("left behind: %v", err)
	}
	if out, _ := exec.Command("git", "-C", root, "worktree", "list").Output(); strings.Count(string(out), "\n") != 1 {
		t.Errorf("git still knows it: %s", out)
	}
	if _, err := checkout(t.Context(), root, "no-such", tree); err == nil || !strings.Contains(err.Error(), "-ref no-such is no commit: git rev-parse: exit status 128: fatal: ") {
		t.Errorf("got %v", err)
	}
}

func TestModFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ref.mod")
	if _, err := modFile("..", "/elsewhere", path); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(mod), "\nreplace pinion => /elsewhere\n") {
		t.Errorf("got %v: %s", err, mod)
	}
	if _, err := os.Stat(strings.TrimSuffix(path, "mod") + "sum"); err != nil {
		t.Error(err)
	}
	if _, err := modFile(t.TempDir(), "/elsewhere", path); err == nil {
		t.Error("no go.mod, no error")
	}
}

func TestParse(t *testing.T) {
	for args, want := range map[string]string{
		"":                    "-ref: want the commit to compare with",
		"-ref a -pairs 5":     "-pairs 5: want at least 8, fewer show nothing",
		"-ref a b":            `unexpected argument "b"`,
		"-ref a -load-cpus x": "-load-cpus",
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", args, err, want)
		}
	}
}
