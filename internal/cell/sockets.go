package cell

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// sockets are the listening sockets of one cell, as bare descriptors: Go's poller
// would wake the supervisor for each connection that comes to a listener it knows.
// The zero value has none.
type sockets []int

// newSockets duplicates the sockets of lns, which stay open.
func newSockets(lns []net.Listener) (all sockets, err error) {
	for _, ln := range lns {
		fd, err := duplicateListener(ln)
		if err != nil {
			all.close()
			return nil, fmt.Errorf("take over listener %v: %w", ln.Addr(), err)
		}
		all = append(all, fd)
	}
	return all, nil
}

func duplicateListener(ln net.Listener) (int, error) {
	sc, ok := ln.(syscall.Conn)
	if !ok {
		return -1, fmt.Errorf("%T has no descriptor: %w", ln, errors.ErrUnsupported)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return -1, err
	}
	dup := -1
	cerr := raw.Control(func(fd uintptr) { dup, err = duplicate(int(fd)) })
	return dup, errors.Join(cerr, err)
}

// duplicate is dup(2) with close-on-exec.
func duplicate(fd int) (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	dup, err := syscall.Dup(fd)
	if err != nil {
		return -1, os.NewSyscallError("dup", err)
	}
	syscall.CloseOnExec(dup)
	return dup, nil
}

// files returns duplicates to start a process with.
func (s sockets) files() ([]*os.File, error) {
	files := make([]*os.File, 0, len(s))
	for _, fd := range s {
		dup, err := duplicate(fd)
		if err != nil {
			closeFiles(files)
			return nil, err
		}
		files = append(files, os.NewFile(uintptr(dup), "listener"))
	}
	return files, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // a duplicate
	}
}

// close closes them; the sockets live on in cells that have them.
func (s sockets) close() {
	for _, fd := range s {
		_ = syscall.Close(fd) // there is nothing to be done about it
	}
}

// socketFile is the file of a listener that is to be removed in the end.
type socketFile struct {
	path string
	info os.FileInfo
}

// closeListener closes ln, whose socket has been duplicated, and returns its file. Without one,
// ok is false.
func closeListener(ln net.Listener) (file socketFile, ok bool) {
	if unix, isUnix := ln.(*net.UnixListener); isUnix {
		unix.SetUnlinkOnClose(false)
		file.path = unix.Addr().String()
		info, err := os.Lstat(file.path) // fails for an abstract socket
		file.info, ok = info, err == nil
	}
	_ = ln.Close() // its socket stays open, so there is nothing that could go wrong
	return file, ok
}

// remove removes the file, unless it has become another's.
func (f socketFile) remove() {
	if info, err := os.Lstat(f.path); err == nil && os.SameFile(info, f.info) {
		_ = os.Remove(f.path) // one that stays is replaced by the next process
	}
}
