package affinity

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Allowed returns the CPUs on which this process may run now: the mask of its
// main thread without offline CPUs, as sched_getaffinity(2) gives it. The
// process's cpuset is already part of it.
func Allowed() (Set, error) {
	return threadMask(os.Getpid())
}

// threadMask returns the mask of a thread of any process; tid 0 is the
// calling thread.
func threadMask(tid int) (Set, error) {
	// 1,024 bits do on nearly every machine. The kernel answers EINVAL to a
	// buffer below its own nr_cpu_ids, which only a wider try can find.
	for width := 1024; ; width *= 2 {
		words := make([]uint, width/wordBits)
		n, err := getMask(tid, words)
		if errors.Is(err, unix.EINVAL) && width <= MaxCPU {
			continue
		}
		if err != nil {
			return Set{}, fmt.Errorf("sched_getaffinity of thread %d: %w", tid, err)
		}
		return setOfWords(words[:n]), nil
	}
}

// setThreadMask wants a set that is not empty.
func setThreadMask(tid int, s Set) error {
	if err := setMask(tid, s.words); err != nil {
		return fmt.Errorf("sched_setaffinity of thread %d to CPUs %v: %w", tid, s, err)
	}
	return nil
}
