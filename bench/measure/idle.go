package measure

import (
	"bufio"
	"context"
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
const settle = 500 * time.Millisecond

const (
	keptBack = 500    // descriptors for other work, here and in a server, whose limit is the same
	fewest   = 1_000  // idle connections, of which the memory can be told
	mostIdle = 20_000 // more only take longer: some servers need 20 KiB for each
)

// ErrDescriptors is returned where too few descriptors may be open.
var ErrDescriptors = errors.New("too few open files are allowed")

// Descriptors returns how many idle connections can be held: what RLIMIT_NOFILE leaves, up
// to 20,000.
func Descriptors() (int, error) {
	var limit syscall.Rlimit
	// Go has raised the soft limit to the hard one (package os).
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("RLIMIT_NOFILE: %w", err)
	}
	return idleOf(limit.Cur)
}

func idleOf(limit uint64) (int, error) {
	if limit < fewest+keptBack {
		return 0, fmt.Errorf("%w: %d, want at least %d", ErrDescriptors, limit, fewest+keptBack)
	}
	return int(min(limit-keptBack, mostIdle)), nil
}

// Memory is the resident memory of a server, in bytes, with few and with many idle
// connections.
type Memory struct {
	Few, Many       int // connections
	RSSFew, RSSMany int64
}

// Idle opens n connections to the server, has each answer one request, and leaves them
// open. It reads the server's memory with a quarter of them and with all. The difference
// to none would be less than what they take: a server that has just started has memory to
// spare, into which the first ones fit.
func Idle(ctx context.Context, p *Process, request []byte, n int) (m Memory, err error) {
	m.Few, m.Many = n/4, n
	var h held
	defer h.close()
	if m.RSSFew, err = h.fill(ctx, p, request, m.Few); err == nil {
		m.RSSMany, err = h.fill(ctx, p, request, m.Many)
	}
	return m, err
}

// fill opens connections until there are n, and returns the server's memory.
func (h *held) fill(ctx context.Context, p *Process, request []byte, n int) (int64, error) {
	for len(h.sockets) < n {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := h.open(p.Addr, request, min(together, n-len(h.sockets))); err != nil {
			return 0, fmt.Errorf("%s, after %d connections: %w", p.Name, len(h.sockets), err)
		}
	}
	time.Sleep(settle)
	return p.RSS()
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
		if err := s.send(request); err != nil {
			return err
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

// send sends all of b. Signals interrupt it: the runtime preempts goroutines by them.
func (s socket) send(b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(int(s), b)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("send: %w", err)
		default:
			b = b[n:]
		}
	}
	return nil
}

// connect connects. When a signal interrupts it the connection is made all the same.
func (s socket) connect(to netip.AddrPort) error {
	err := unix.Connect(int(s), &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())})
	if !errors.Is(err, unix.EINTR) {
		return err
	}
	n := 0
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Poll([]unix.PollFd{{Fd: int32(s), Events: unix.POLLOUT}}, int(patience.Milliseconds()))
	}
	code := 0
	switch {
	case err != nil:
		return err
	case n == 0:
		return unix.ETIMEDOUT
	}
	if code, err = unix.GetsockoptInt(int(s), unix.SOL_SOCKET, unix.SO_ERROR); err == nil && code != 0 {
		err = unix.Errno(code)
	}
	return err
}

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
		func() error { return socket(fd).connect(to) },
	} {
		if err := step(); err != nil {
			_ = unix.Close(fd)
			return -1, fmt.Errorf("connect: %w", err)
		}
	}
	return socket(fd), nil
}
