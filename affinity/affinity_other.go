//go:build !linux

package affinity

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// Allowed needs Linux; the error wraps [errors.ErrUnsupported].
func Allowed() (Set, error) { return Set{}, unsupported("read the CPU mask") }

// Pin needs Linux; the error wraps [errors.ErrUnsupported].
func Pin(s Set) error { return unsupported("pin to CPUs " + s.String()) }

// Reexec needs Linux; the error wraps [errors.ErrUnsupported].
func Reexec(p Placement) error { return unsupported("restart on CPUs " + p.String()) }

// Executable returns what [os.Executable] does.
func Executable() (string, error) { return os.Executable() }

// MemoryPolicy needs Linux; the error wraps [errors.ErrUnsupported].
func MemoryPolicy(nodes Set) error {
	return unsupported("prefer memory of nodes " + nodes.String())
}

func onMainThread() bool { return false }

// run needs Linux; start is not called.
func (c launch) run() error {
	return unsupported("start a process on CPUs " + c.placement.String())
}

// Attach needs Linux; the error wraps [errors.ErrUnsupported].
func (s Steering) Attach(syscall.Conn) error { return unsupported("steer connections") }

// Detach needs Linux; the error wraps [errors.ErrUnsupported].
func Detach(syscall.Conn) error { return unsupported("steer connections") }

func unsupported(what string) error {
	return fmt.Errorf("%s on %s: %w", what, runtime.GOOS, errors.ErrUnsupported)
}
