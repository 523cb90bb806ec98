package openloop

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processCPU returns the user and system time so far of a process and its descendants
// (a master and its workers), in nanoseconds as the scheduler counts. A descendant that
// is gone is left out: compare only while the tree stays the same.
func processCPU(pid int) (time.Duration, error) {
	// The clock of another process, as clock_getcpuclockid(3) makes it: the complement of
	// the id, shifted by three, and 2 for the scheduler's own count.
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	sum := time.Duration(t.Nano())
	// Children belong to the thread that made them: proc_tid_children(5).
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return 0, err
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			return 0, fmt.Errorf("children of process %d: %w", pid, err)
		}
		for _, field := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return 0, fmt.Errorf("children of process %d: %w", pid, err)
			}
			of, err := processCPU(child)
			if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EINVAL) {
				return 0, err
			}
			sum += of
		}
	}
	return sum, nil
}

// runDelay returns for how long the thread has been ready to run and without a CPU, by
// the scheduler's statistics (Documentation/scheduler/sched-stats.rst), or 0 where a
// kernel keeps none.
func runDelay() time.Duration {
	text, err := os.ReadFile("/proc/thread-self/schedstat")
	if err != nil {
		return 0
	}
	var ran, delayed int64
	if _, err := fmt.Sscan(string(text), &ran, &delayed); err != nil {
		return 0
	}
	return time.Duration(delayed)
}
