package engine

import (
	"net"
	"syscall"
)

// system is the kernel as the loops see it: the only door to system calls on
// connections, and the seam where tests inject faults. A call through it costs
// about a nanosecond. No call blocks. The errno is 0 on success.
type system struct {
	recv     func(fd int, p []byte) (int, syscall.Errno)
	send     func(fd int, p []byte) (int, syscall.Errno)
	accept   func(listener int) (int, syscall.Errno)
	shutdown func(fd int) syscall.Errno // ends the sending side
	abort    func(fd int) syscall.Errno // ends both sides, keeps the descriptor
	close    func(fd int) syscall.Errno
	local    func(fd int) net.Addr // nil when unknown
	remote   func(fd int) net.Addr // nil when unknown
	detach   func(fd int) (net.Conn, error)
}
