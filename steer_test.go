package main

import (
	"fmt"
	"net"
	"testing"

	"pinion/affinity"
	"pinion/internal/config"
)

func set(t *testing.T, list string) affinity.Set {
	t.Helper()
	s, err := affinity.ParseSet(list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSteering: which CPU's connections go to which listeners.
func TestSteering(t *testing.T) {
	for _, tc := range []struct {
		name  string
		nodes []string // CPUs of each
		cpus  string
		cells string
		how   string
		by    string
		want  string // CPUs > first listener + count
	}{
		{"two nodes", []string{"0-3", "4-7"}, "0-7", "auto", "auto", "node", "0-3>0+4 4-7>4+4"},
		{"parts of two nodes", []string{"0-3", "4-7"}, "2-5", "auto", "auto", "node", "2-3>0+2 4-5>2+2 0-1>0+2 6-7>2+2"},
		{"a node that is not ours", []string{"0-1", "2-3", "4-5"}, "0-3", "auto", "auto", "node", "0-1>0+2 2-3>2+2"},
		{"two cells on a node", []string{"0-7"}, "0-3", "2", "auto", "node", "0-1>0+2 2-3>2+2 4-7>0+4"},
		{"one process", []string{"0-3", "4-7"}, "0-7", "off", "auto", "hash", ""},
		{"one process by CPU", []string{"0-1", "2-3"}, "0-3", "off", "cpu", "cpu", "0>0+1 1>1+1 2>2+1 3>3+1"},
		{"two cells by CPU", []string{"0-1", "2-3"}, "0-3", "auto", "cpu", "cpu", "0>0+1 1>1+1 2>2+1 3>3+1"},
		{"off", []string{"0-3", "4-7"}, "0-7", "auto", "off", "hash", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := new(place)
			for i, cpus := range tc.nodes {
				p.machine.Nodes = append(p.machine.Nodes, affinity.Node{ID: i, CPUs: set(t, cpus), MemoryBytes: 1 << 30})
				p.machine.Online = p.machine.Online.Union(set(t, cpus))
			}
			mode, err := affinity.ParseCells(tc.cells)
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("GOMAXPROCS", "")
			if p.cells, err = p.machine.Plan(set(t, tc.cpus), mode); err != nil {
				t.Fatal(err)
			}
			lns := make([][]net.Listener, len(p.cells))
			for i, c := range p.cells {
				lns[i] = make([]net.Listener, c.GOMAXPROCS)
			}
			by, targets := steering(tc.how, p, lns)
			got := ""
			for i, target := range targets {
				if i > 0 {
					got += " "
				}
				got += fmt.Sprintf("%v>%d+%d", target.CPUs, target.First, target.Count)
			}
			if by != tc.by || got != tc.want {
				t.Errorf("by %s: %s, want by %s: %s", by, got, tc.by, tc.want)
			}
		})
	}
}

// TestSteeringCPUsShareLoops: a quota leaves fewer loops than CPUs.
func TestSteeringCPUsShareLoops(t *testing.T) {
	p := &place{cells: []affinity.Cell{{CPUs: set(t, "0-4")}}}
	_, targets := steering(config.SteerCPU, p, [][]net.Listener{make([]net.Listener, 2)})
	if got := fmt.Sprint(targets); got != "[{0,2,4 0 1} {1,3 1 1}]" {
		t.Errorf("got %s", got)
	}
}
