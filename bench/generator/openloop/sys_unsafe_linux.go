package openloop

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The sockets do not block, so these calls need not tell the scheduler, which costs as
// much as the shortest of them takes.

func recv(fd int, p []byte) (int, syscall.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
	return int(n), errno
}

// message is what recvmsg(2) fills in: bytes, and when the kernel had them.
type message struct {
	header  unix.Msghdr
	part    unix.Iovec
	control struct {
		unix.Cmsghdr
		at unix.Timespec
	}
}

// recv returns the time as SO_TIMESTAMPNS has it (socket(7)), of the last segment read, in
// nanoseconds since 1970; 0 if there is none.
func (m *message) recv(fd int, p []byte) (n int, at int64, errno syscall.Errno) {
	m.part.Base = unsafe.SliceData(p)
	m.part.SetLen(len(p))
	m.header.Iov = &m.part
	m.header.SetIovlen(1)
	m.header.Control = (*byte)(unsafe.Pointer(&m.control))
	m.header.SetControllen(int(unsafe.Sizeof(m.control)))
	r, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&m.header)), 0)
	if errno == 0 && m.header.Controllen > 0 && m.control.Type == unix.SO_TIMESTAMPNS {
		at = m.control.at.Nano()
	}
	return int(r), at, errno
}

// send makes a peer that is gone EPIPE, not a signal.
func send(fd int, p []byte) (int, syscall.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}

// poll is epoll_wait that does not wait.
func poll(epfd int, events []unix.EpollEvent) (int, syscall.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	return int(n), errno
}

// wait is epoll_pwait2(2), which has a timeout in nanoseconds. It does tell the
// scheduler. Before Linux 5.11 it is ENOSYS.
func wait(epfd int, events []unix.EpollEvent, d time.Duration) (int, syscall.Errno) {
	t := unix.NsecToTimespec(int64(d))
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(epfd),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)),
		uintptr(unsafe.Pointer(&t)), 0, 0)
	return int(n), errno
}
