package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Listen opens n listeners on addr, one for each loop. For "host:port" the
// kernel spreads connections over them (SO_REUSEPORT, socket(7)), and all get
// the port of the first if that is 0. A port that somebody else listens on is an
// error, also if that is a server which would share it. For "unix:/path" there is
// one listener; a socket file that nobody listens on is replaced.
func Listen(addr string, n int) (_ []net.Listener, err error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		ln, err := listenUnix(path)
		if err != nil {
			return nil, err
		}
		return []net.Listener{ln}, nil
	}
	// SO_REUSEPORT would let two servers of one user share the port without a
	// word. Only a listener without it is told that the port is taken.
	probe, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("engine: listen on %q: %w", addr, err)
	}
	if addr, err = withPort(addr, probe.Addr()); err == nil {
		err = probe.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("engine: listen on %q: %w", addr, err)
	}
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var serr error
		err := raw.Control(func(fd uintptr) {
			serr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, serr)
	}}
	// No client of an API asks for Multipath TCP, which package net offers; a
	// listener that offers it accepts at a higher price and takes no program
	// that chooses among listeners.
	lc.SetMultipathTCP(false)
	lns := make([]net.Listener, 0, n)
	defer func() {
		if err != nil {
			for _, ln := range lns {
				_ = ln.Close()
			}
		}
	}()
	for range max(n, 1) {
		ln, err := lc.Listen(context.Background(), "tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("engine: listen on %q: %w", addr, err)
		}
		lns = append(lns, ln)
	}
	return lns, nil
}

// withPort returns addr with the port that a listener on it has got.
func withPort(addr string, got net.Addr) (string, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr, err
	}
	_, port, err := net.SplitHostPort(got.String())
	return net.JoinHostPort(host, port), err
}

// listenUnix replaces the socket file of a server that is gone.
func listenUnix(path string) (net.Listener, error) {
	ln, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) {
		probe, derr := net.Dial("unix", path)
		if derr == nil {
			_ = probe.Close()
			return nil, fmt.Errorf("engine: listen on unix:%s: %w", path, err)
		}
		if rerr := os.Remove(path); rerr != nil {
			return nil, fmt.Errorf("engine: replace unix:%s: %w", path, rerr)
		}
		ln, err = net.Listen("unix", path)
	}
	if err != nil {
		return nil, fmt.Errorf("engine: listen on unix:%s: %w", path, err)
	}
	return ln, nil
}

// listenerFD returns a duplicate of the listener's descriptor, set up for the
// loops.
func listenerFD(ln net.Listener) (int, error) {
	sc, ok := ln.(syscall.Conn)
	if !ok {
		return -1, fmt.Errorf("engine: listener %T: %w", ln, errors.ErrUnsupported)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return -1, fmt.Errorf("engine: listener %v: %w", ln.Addr(), err)
	}
	dup := -1
	var derr error
	err = raw.Control(func(fd uintptr) {
		if dup, derr = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); derr != nil {
			return
		}
		if _, tcp := ln.(*net.TCPListener); tcp {
			// Accepted sockets inherit it (tcp(7)); package net sets it on each.
			derr = unix.SetsockoptInt(dup, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		}
	})
	if err = errors.Join(err, derr); err != nil {
		if dup >= 0 {
			_ = unix.Close(dup)
		}
		return -1, fmt.Errorf("engine: listener %v: %w", ln.Addr(), err)
	}
	return dup, nil
}

// closeListener closes the original of a duplicated listener. Its socket lives
// on in the duplicates, and so does the socket file.
func closeListener(ln net.Listener) error {
	if u, ok := ln.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	return ln.Close()
}
