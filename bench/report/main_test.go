package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pinion/bench/record"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	raw, out := filepath.Join(dir, "data", "raw.json"), filepath.Join(dir, "page")
	for _, d := range []string{filepath.Dir(raw), out} {
		if err := os.Mkdir(d, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	data := &record.Run{Samples: []record.Sample{{Scenario: "ping", Conns: 64, Peer: "engine", Requests: 1e6, ServerCPU: 7, Seconds: 8}}}
	if err := data.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"-in", raw, "-out", out}); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(out, "README.md"))
	if err != nil || !strings.Contains(string(page), "(../data/raw.json)") || !strings.Contains(string(page), "7.00") {
		t.Errorf("%v, %s", err, page)
	}
	if _, err := os.Stat(filepath.Join(out, "cpu-ping.svg")); err != nil {
		t.Error(err)
	}

	for _, args := range [][]string{{"-in", raw + "x", "-out", out}, {"-in", raw, "-out", out + "x"}, {"what"}} {
		if run(args) == nil {
			t.Errorf("%v: no error", args)
		}
	}
	if err := os.WriteFile(raw, []byte(`{"version":99}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"-in", raw, "-out", out}); !errors.Is(err, record.ErrVersion) {
		t.Errorf("another version: %v", err)
	}
}

// TestSecondRun takes only one that the first can be compared with.
func TestSecondRun(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, r record.Run) string {
		path := filepath.Join(dir, name)
		if err := r.Write(path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first := write("raw.json", record.Run{Command: "make bench-peers"})
	for _, c := range []struct {
		name   string
		second record.Run
		want   string // of the error
	}{
		{"the same", record.Run{Command: "make bench-peers"}, ""},
		{"another command", record.Run{Command: "make bench-peers ARGS='-peers engine'"}, "-peers engine"},
		{"cut off", record.Run{Command: "make bench-peers", Partial: "it was interrupted in round 3"}, "it was interrupted in round 3"},
		{"quick", record.Run{Command: "make bench-peers", Quick: true}, "quick"},
	} {
		err := run([]string{"-in", first, "-again", write("again.json", c.second), "-out", dir})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (!errors.Is(err, errUnlike) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
