package affinity

import (
	"fmt"
	"os"
	"path/filepath"
)

// Online returns the CPUs the kernel schedules on, whether or not this
// process may use them. root is the directory under which sysfs is looked
// for at sys, "/" on a live system. A kernel without CPU hotplug has no such
// file, and the error then wraps [io/fs.ErrNotExist].
func Online(root string) (Set, error) {
	file := filepath.Join(root, "sys/devices/system/cpu/online")
	list, err := os.ReadFile(file)
	if err != nil {
		return Set{}, fmt.Errorf("online CPUs: %w", err)
	}
	s, err := ParseSet(string(list))
	if err != nil {
		return Set{}, fmt.Errorf("online CPUs: %s: %w", file, err)
	}
	return s, nil
}
