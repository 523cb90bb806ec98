//go:build unix

package members

import (
	"errors"
	"net"
	"syscall"
)

// silent reports whether a read from the socket would wait: it is open, and nothing has
// come. A socket that cannot be asked is not silent.
func silent(socket net.Conn) bool {
	sc, ok := socket.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	waits := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK) // the net package's sockets do not block
		waits = errors.Is(err, syscall.EAGAIN)
		return true // or Read would wait
	})
	return err == nil && waits
}
