//go:build linux

package affinity

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The two calls below pass a mask of any width, which unix.SchedGetaffinity
// and unix.SchedSetaffinity cannot: unix.CPUSet ends at CPU 1023. Both are
// RawSyscalls because they return at once; thread 0 is the calling one.

// getMask fills words, which must not be empty, from the mask of a thread and
// returns how many of them the kernel wrote. EINVAL means that words is
// shorter than the kernel's mask.
func getMask(tid int, words []uint) (int, error) {
	const wordSize = unsafe.Sizeof(words[0])
	n, _, errno := unix.RawSyscall(unix.SYS_SCHED_GETAFFINITY, uintptr(tid),
		uintptr(len(words))*wordSize, uintptr(unsafe.Pointer(unsafe.SliceData(words))))
	if errno != 0 {
		return 0, errno
	}
	return int(n / wordSize), nil
}

// setMask sets the mask of a thread. Bits the kernel has no CPU for are
// ignored by it; words must not be empty.
func setMask(tid int, words []uint) error {
	const wordSize = unsafe.Sizeof(words[0])
	_, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETAFFINITY, uintptr(tid),
		uintptr(len(words))*wordSize, uintptr(unsafe.Pointer(unsafe.SliceData(words))))
	if errno != 0 {
		return errno
	}
	return nil
}
