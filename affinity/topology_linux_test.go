package affinity

import "testing"

// What this machine is, nobody knows; some things are so on every one.
func TestReadTopologyLive(t *testing.T) {
	top, err := ReadTopology("/")
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + describe(top))
	checkPartitions(t, top)
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	if extra := allowed.Difference(top.Online); !extra.Empty() {
		t.Errorf("CPUs %v are allowed and not online", extra)
	}
	if !top.CPUSet.Empty() {
		if extra := allowed.Difference(top.CPUSet); !extra.Empty() {
			t.Errorf("CPUs %v are allowed and not in the cpuset %v", extra, top.CPUSet)
		}
	}
	var memory uint64
	for _, n := range top.Nodes {
		memory += n.MemoryBytes
	}
	if memory < 1<<24 {
		t.Errorf("the machine has %d bytes of memory", memory)
	}
	if err := top.Check(allowed, allowed); err != nil {
		t.Error(err)
	}
}
