package engine

import (
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// kernel returns the system calls of Linux.
func kernel() *system {
	return &system{
		recv:     rawRecv,
		send:     rawSend,
		accept:   accept,
		shutdown: func(fd int) syscall.Errno { return errnoOf(unix.Shutdown(fd, unix.SHUT_WR)) },
		abort:    func(fd int) syscall.Errno { return errnoOf(unix.Shutdown(fd, unix.SHUT_RDWR)) },
		close:    closeFD,
		local: func(fd int) net.Addr {
			sa, err := unix.Getsockname(fd)
			return addrOf(sa, err)
		},
		remote: func(fd int) net.Addr {
			sa, err := unix.Getpeername(fd)
			return addrOf(sa, err)
		},
		detach: detach,
	}
}

// accept takes a connection without asking for its address: most handlers
// never look at it, and getpeername can be asked later.
func accept(listener int) (int, syscall.Errno) {
	fd, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(listener), 0, 0,
		unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
	return int(fd), errno
}

// closeFD closes a socket. Without SO_LINGER that never blocks.
func closeFD(fd int) syscall.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
	return errno
}

// detach hands the socket to Go's network poller and closes fd.
func detach(fd int) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "")
	if f == nil {
		return nil, fmt.Errorf("engine: descriptor %d: %w", fd, os.ErrInvalid)
	}
	nc, err := net.FileConn(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, fmt.Errorf("engine: detach descriptor %d: %w", fd, err)
	}
	return nc, nil
}

func addrOf(sa unix.Sockaddr, err error) net.Addr {
	if err != nil {
		return nil
	}
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return &net.TCPAddr{IP: net.IP(sa.Addr[:]), Port: sa.Port}
	case *unix.SockaddrInet6:
		ip := net.IP(sa.Addr[:])
		if v4 := ip.To4(); v4 != nil {
			ip = v4 // as package net shows IPv4 peers of a dual-stack socket
		}
		addr := &net.TCPAddr{IP: ip, Port: sa.Port}
		if sa.ZoneId != 0 {
			addr.Zone = zoneName(int(sa.ZoneId))
		}
		return addr
	case *unix.SockaddrUnix:
		return &net.UnixAddr{Name: sa.Name, Net: "unix"}
	}
	return nil
}

func zoneName(index int) string {
	if ifi, err := net.InterfaceByIndex(index); err == nil {
		return ifi.Name
	}
	return fmt.Sprint(index)
}

func errnoOf(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	if errno, ok := err.(syscall.Errno); ok { //nolint:errorlint // x/sys returns bare errnos
		return errno
	}
	return syscall.EINVAL
}
