package measure

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"
)

// settle is how long a server has to come to rest before its memory is read.
const settle = time.Second

// Descriptors returns how many more descriptors this process may open, of which a few are
// kept back for other work, here and in a server, whose limit is the same.
func Descriptors() (int, error) {
	var limit syscall.Rlimit
	// Go has raised the soft limit to the hard one (package os).
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("RLIMIT_NOFILE: %w", err)
	}
	const kept = 500
	return int(min(limit.Cur, 1<<20)) - kept, nil
}

// Idle opens n connections to the server, has each answer one request, leaves them open,
// and returns the server's memory before and with them.
func Idle(p *Process, request []byte, n int) (before, with int64, err error) {
	time.Sleep(settle)
	if before, err = p.RSS(); err != nil {
		return 0, 0, err
	}
	var h held
	defer h.close()
	for len(h.sockets) < n {
		if err := h.open(p.Addr, request, min(together, n-len(h.sockets))); err != nil {
			return 0, 0, fmt.Errorf("%s, after %d connections: %w", p.Name, len(h.sockets), err)
		}
	}
	time.Sleep(settle)
	with, err = p.RSS()
	return before, with, err
}

// together is how many connections are opened at once: fewer than any server queues.
const together = 64

// held are open connections. They are plain sockets: tens of thousands of net.Conns would
// take the generator longer to open than the server.
type held struct {
	sockets []socket
	in      *bufio.Reader
}

func (h *held) close() {
	for _, s := range h.sockets {
		_ = unix.Close(int(s))
	}
}

// open opens n more connections and has a request answered on each.
func (h *held) open(addr string, request []byte, n int) error {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return err
	}
	if h.in == nil {
		h.in = bufio.NewReaderSize(nil, 1<<10)
	}
	first := len(h.sockets)
	for range n {
		// By default an address has 28,000 ports to connect from, and when half of them are
		// taken the kernel looks through thousands for each connection.
		from := [4]byte{127, 0, 1, byte(1 + len(h.sockets)/8_000)}
		s, err := connect(from, to)
		if err != nil {
			return err
		}
		h.sockets = append(h.sockets, s)
		if _, err := unix.Write(int(s), request); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	var resp fasthttp.Response
	for _, s := range h.sockets[first:] {
		h.in.Reset(s)
		if err := resp.Read(h.in); err != nil {
			return err
		}
		if resp.StatusCode() != fasthttp.StatusOK {
			return fmt.Errorf("status %d", resp.StatusCode())
		}
	}
	return nil
}

// socket is a connected socket that blocks, for as long as patience.
type socket int

// Read implements io.Reader.
func (s socket) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(s), p)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, fmt.Errorf("receive: %w", err)
		case n == 0:
			return 0, io.ErrUnexpectedEOF
		}
		return n, nil
	}
}

func connect(from [4]byte, to netip.AddrPort) (socket, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	wait := unix.NsecToTimeval(patience.Nanoseconds())
	for _, step := range []func() error{
		// Closed with a reset: so many in TIME_WAIT would slow down what is measured next.
		func() error {
			return unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		},
		func() error { return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait) },
		func() error { return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait) },
		// The port is chosen by connect, which looks for a free pair and not for a free port.
		func() error { return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1) },
		func() error { return unix.Bind(fd, &unix.SockaddrInet4{Addr: from}) },
		func() error {
			return unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())})
		},
	} {
		if err := step(); err != nil {
			_ = unix.Close(fd)
			return -1, fmt.Errorf("connect: %w", err)
		}
	}
	return socket(fd), nil
}
