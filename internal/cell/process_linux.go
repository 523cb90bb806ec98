package cell

import (
	"os"
	"syscall"
)

// attributes has a cell killed when the thread that forked it ends, and keeps it out of the
// terminal's signals, which are for the supervisor to pass on.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// controlPair returns two connected sockets that keep packets apart, for a
// supervisor and a cell.
func controlPair() (ours, theirs *os.File, err error) { return socketPair(syscall.SOCK_SEQPACKET) }

// streamPair returns two connected stream sockets.
func streamPair() (ours, theirs *os.File, err error) { return socketPair(syscall.SOCK_STREAM) }

func socketPair(kind int) (ours, theirs *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, kind|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "pair"), os.NewFile(uintptr(fds[1]), "pair"), nil
}
