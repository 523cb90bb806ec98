package affinity_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"

	"pinion/affinity"
)

func ExampleParseSet() {
	cpus, err := affinity.ParseSet("0-3,8-15:2/4")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cpus, cpus.Len())
	// Output: 0-3,8-9,12-13 8
}

// A main function of one process puts itself in place before anything else.
func Example() {
	main := func(list string) error {
		cpus, err := affinity.ParseSet(list)
		if err != nil {
			return err
		}
		if err := affinity.Reexec(affinity.Placement{CPUs: cpus}); err != nil {
			return err
		}
		decision, err := affinity.Apply(cpus, 1)
		if err != nil {
			fmt.Println("warning:", err)
		}
		fmt.Println(decision)
		return nil
	}
	fmt.Println(main("7-4"))
	// Output: CPU list: "7-4" at byte 0: the range is reversed
}

// A machine with two nodes, four CPUs each, of which six are wanted, and a
// cgroup quota of 3 CPUs.
func ExampleTopology_Plan() {
	node := func(id int, list string) affinity.Node {
		cpus, err := affinity.ParseSet(list)
		if err != nil {
			fmt.Println(err)
		}
		return affinity.Node{ID: id, CPUs: cpus, MemoryBytes: 64 << 30}
	}
	machine := affinity.Topology{
		Nodes:     []affinity.Node{node(0, "0-3"), node(1, "4-7")},
		Quota:     3,
		QuotaFrom: "/sys/fs/cgroup/api/cpu.max",
	}
	cpus, err := affinity.ParseSet("0-5")
	if err != nil {
		fmt.Println(err)
		return
	}
	cells, err := machine.Plan(cpus, affinity.Cells{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range cells {
		fmt.Printf("CPUs %v, memory of node %v, GOMAXPROCS %d\n", c.CPUs, c.Memory, c.GOMAXPROCS)
		fmt.Println(" ", c.Reason)
	}
	// Output:
	// CPUs 0-3, memory of node 0, GOMAXPROCS 2
	//   the CPUs on node 0; GOMAXPROCS: cgroup quota 3 CPUs at /sys/fs/cgroup/api/cpu.max, 2 of them for this process
	// CPUs 4-5, memory of node 1, GOMAXPROCS 1
	//   the CPUs on node 1; GOMAXPROCS: cgroup quota 3 CPUs at /sys/fs/cgroup/api/cpu.max, 1 of them for this process
}

// A parent starts a process for each cell.
func ExampleLauncher() {
	start := func(cells []affinity.Cell) error {
		launcher := affinity.NewLauncher()
		defer launcher.Close() // after all children, if they have a Pdeathsig
		for _, c := range cells {
			child := exec.Command(os.Args[0], "-cell", fmt.Sprint(c.Index))
			where := affinity.Placement{CPUs: c.CPUs, Memory: c.Memory}
			if err := launcher.Do(where, child.Start); err != nil {
				return err
			}
			defer func() { _ = child.Wait() }()
		}
		return nil
	}
	_ = start
}

// Two cells of four loops each: a connection goes to any loop of the cell
// whose node took its first packet.
func ExampleSteering() {
	steer := func(cells []affinity.Cell, first *net.TCPListener) error {
		var s affinity.Steering
		listeners := 0
		for _, c := range cells {
			s = append(s, affinity.Target{CPUs: c.CPUs, First: listeners, Count: c.GOMAXPROCS})
			listeners += c.GOMAXPROCS
		}
		return s.Attach(first)
	}
	_ = steer
}
