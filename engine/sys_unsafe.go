//go:build linux

package engine

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls below do not block for long: the sockets are non-blocking and the
// wait has a short timeout. unix.Read and friends would enter and leave the scheduler around
// each of them, which costs time and can lose the P to another thread; a raw
// system call does neither, and needs the address of its buffer, hence unsafe.

// rawRecv reads from a socket. It returns -1 and the errno on failure.
func rawRecv(fd int, p []byte) (int, syscall.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
	return int(n), errno
}

// rawSend writes to a socket; a peer that is gone is EPIPE, not a signal.
func rawSend(fd int, p []byte) (int, syscall.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}

// rawPoll is epoll_wait with a timeout in milliseconds. events must not be empty.
// With a timeout it does block, and keeps its P: the caller bounds the time. A
// garbage collection does not wait for it, because the signal with which the
// runtime asks for a stop interrupts the call, and is repeated.
func rawPoll(epfd int, events []unix.EpollEvent, timeout int) (int, syscall.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), uintptr(timeout), 0, 0)
	return int(n), errno
}
