// Package listen turns the addresses of the command line (host:port or unix:/path)
// into listeners.
package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall" // only for the number of one errno
	"time"
)

// ErrInUse is wrapped by the error of Addr.Listen when a process answers on the
// socket file.
var ErrInUse = errors.New("another process is listening on it")

const unixPrefix = "unix:"

// Addr is where to listen. The zero value is not valid.
type Addr struct {
	network string // "tcp" or "unix"
	address string
}

// Parse reads host:port, with an IP address, a name or nothing for the host and a
// number from 0 (any free one) to 65535 for the port, or unix:/path of a socket
// file. A path that starts with @ is a Linux abstract socket. It looks nothing up.
func Parse(s string) (Addr, error) {
	if path, ok := strings.CutPrefix(s, unixPrefix); ok {
		if path == "" || path == "@" {
			return Addr{}, fmt.Errorf("address %q: the path is missing", s)
		}
		if strings.ContainsRune(path, 0) {
			return Addr{}, fmt.Errorf("address %q: a path cannot hold a zero byte", s)
		}
		return Addr{network: "unix", address: path}, nil
	}
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return Addr{}, fmt.Errorf("address %q: want host:port or unix:/path", s)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return Addr{}, fmt.Errorf("address %q: the port must be a number from 0 to 65535", s)
	}
	return Addr{network: "tcp", address: s}, nil
}

// Unix reports whether a is a socket file.
func (a Addr) Unix() bool { return a.network == "unix" }

// String is the address as Parse reads it.
func (a Addr) String() string {
	if a.network == "unix" {
		return unixPrefix + a.address
	}
	return a.address
}

// Listen opens the listener; ctx bounds the look-up of a host name. Closing it
// removes the socket file. A socket file that a dead process left behind is replaced;
// one that is answered, or a file of another kind, is an error and stays. The error
// names the address and wraps the system's.
//
// Two processes that find the same stale file in the same instant can both replace
// it, and the later one wins: give each its own path.
func (a Addr) Listen(ctx context.Context) (net.Listener, error) {
	ln, err := a.bind(ctx)
	if err != nil && a.network == "unix" && errors.Is(err, syscall.EADDRINUSE) {
		if err = removeStale(ctx, a.address); err == nil {
			ln, err = a.bind(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", a, err)
	}
	return ln, nil
}

func (a Addr) bind(ctx context.Context) (net.Listener, error) {
	// Go switches TCP keep-alive on with four calls into the kernel for each accepted
	// connection. Our servers have idle timeouts, which find a dead peer sooner.
	cfg := net.ListenConfig{KeepAlive: -1}
	ln, err := cfg.Listen(ctx, a.network, a.address)
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err // the rest of an OpError is the address, which the caller adds
	}
	return ln, err
}

// removeStale removes the socket file at path if nobody answers there.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its owner has just removed it
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("there is a file that is not a socket")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close() // nothing was sent: there is nothing to lose
		return ErrInUse
	}
	// Any other failure, such as a full queue or a missing permission, may come from a
	// process that is alive.
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w, or may be: %w", ErrInUse, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
