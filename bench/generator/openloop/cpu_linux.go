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
	err := unix.ClockGettime(int32(^pid<<3|2), &t)
	if errors.Is(err, unix.EINVAL) { // what the kernel has for a process that is not there
		err = unix.ESRCH
	}
	if err != nil {
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
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return 0, err
			}
			sum += of
		}
	}
	return sum, nil
}

// delay is what the scheduler's statistics say of a thread.
type delay struct {
	total time.Duration // ready to run and without a CPU
	turns int64         // on a CPU
}

// runDelay returns that of this thread, from the second and third field of schedstat
// (Documentation/scheduler/sched-stats.rst), or nothing where a kernel keeps none.
func runDelay() (d delay) {
	text, err := os.ReadFile("/proc/thread-self/schedstat")
	if err != nil {
		return delay{}
	}
	var ran, total int64
	if _, err := fmt.Sscan(string(text), &ran, &total, &d.turns); err != nil {
		return delay{}
	}
	d.total = time.Duration(total)
	return d
}

// wakeup is how much of each delay is not the doing of others: an idle CPU, too, takes
// some 10 µs to begin with a thread that has become ready.
const wakeup = 20 * time.Microsecond

// since returns how long others had the CPU since before.
func (d delay) since(before delay) time.Duration {
	return max(0, d.total-before.total-time.Duration(d.turns-before.turns)*wakeup)
}
