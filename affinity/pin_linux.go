package affinity

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Pin moves every thread of this process to the CPUs of s, and so every
// thread made later, since a thread inherits the mask of its maker. It is
// for code that lives in a process it did not start; a main function calls
// [Reexec], after which [runtime.NumCPU] is right too.
//
// s may name only CPUs of [Allowed]: the error is otherwise a
// [*NotAllowedError], or [ErrEmptySet]. Pin never widens a mask somebody
// narrowed for the process. A thread that was given a mask of its own before
// gets s like every other. After any other error some threads have been
// moved and some not.
//
// Pin does not touch GOMAXPROCS (see [Apply]), and reads /proc, which must be
// mounted. Concurrent calls with different sets undo each other.
func Pin(s Set) error {
	allowed, err := Allowed()
	if err != nil {
		return err
	}
	if err := check(s, allowed); err != nil {
		return err
	}

	// A thread not yet moved may start others while the list is read. So
	// the list is read until all that it names have the mask: from then on
	// there is nobody left to inherit another from.
	const passes = 64
	var last error
	for range passes {
		if last, err = pinPass(s); last == nil || err != nil {
			return err
		}
	}
	return fmt.Errorf("pin threads: not settled after %d passes: %w", passes, last)
}

// pinPass moves the threads that are elsewhere. moved is not nil if there
// were any, and tells the last mask found.
func pinPass(s Set) (moved, err error) {
	tids, err := threads()
	if err != nil {
		return nil, err
	}
	for _, tid := range tids {
		mask, err := threadMask(tid)
		if err == nil && !mask.Equal(s) {
			moved = &MaskError{Want: s, Got: mask}
			err = setThreadMask(tid, s)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) { // a thread may end
			return moved, err
		}
	}
	return moved, nil
}

// stray returns the mask of a thread of this process that does not have s, if
// there is one.
func stray(s Set) (mask Set, found bool, err error) {
	tids, err := threads()
	if err != nil {
		return Set{}, false, err
	}
	for _, tid := range tids {
		mask, err := threadMask(tid)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil || !mask.Equal(s) {
			return mask, true, err
		}
	}
	return Set{}, false, nil
}

// threads lists the threads of this process at about this moment.
func threads() ([]int, error) {
	const dir = "/proc/self/task"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list threads: %w", err)
	}
	tids := make([]int, 0, len(entries))
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, fmt.Errorf("list threads: %s: %w", dir, err)
		}
		tids = append(tids, tid)
	}
	return tids, nil
}
