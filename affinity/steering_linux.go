package affinity

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Attach makes s the rule of the whole SO_REUSEPORT group that ln is in, in
// place of any other. It is in force at once, for listeners that join later
// too, and until [Detach] or the end of the group; no connection that was made
// is moved. It needs no privilege.
//
// ln is a listening TCP socket, as [net.TCPListener], that was bound with
// SO_REUSEPORT and does not speak Multipath TCP, as it would by default: see
// [net.ListenConfig.SetMultipathTCP].
//
// The error wraps [errors.ErrUnsupported] for Multipath TCP and for kernels
// before 4.5, EINVAL for a socket in no group, ENOMEM where the program takes
// more than net.core.optmem_max, and may be [ErrSteeringTooLarge].
func (s Steering) Attach(ln syscall.Conn) error {
	program, err := s.program()
	if err != nil {
		return err
	}
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return control(ln, "attach a program to the listener", func(fd int) error {
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF, &fprog)
	})
}

// Detach gives the choice of a listener in the group of ln back to the
// kernel's hash, for a process that goes on listening when its [Steering] is no
// longer right; the end of the group needs none. ln is any listener of it. The error wraps ENOENT if nothing was attached, and
// [errors.ErrUnsupported] for kernels before 5.3.
func Detach(ln syscall.Conn) error {
	return control(ln, "detach the program from the listener", func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_REUSEPORT_BPF, 0)
	})
}

func control(ln syscall.Conn, what string, option func(fd int) error) error {
	raw, err := ln.SyscallConn()
	if err == nil {
		var errOption error
		err = errors.Join(raw.Control(func(fd uintptr) { errOption = option(int(fd)) }), errOption)
	}
	switch {
	case errors.Is(err, unix.ENOPROTOOPT):
		return fmt.Errorf("%s: %w (%w)", what, err, errors.ErrUnsupported)
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
