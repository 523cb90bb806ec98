package cell

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Why Supervisor.Run ended although nobody asked it to; an [*ExitError] wraps them.
var (
	ErrNeverReady = errors.New("ended before it was ever ready")
	ErrTooOften   = errors.New("ended too often")
)

// ErrNotRunning is wrapped by the error of Supervisor.Dial for a cell that has no
// process at the moment.
var ErrNotRunning = errors.New("the cell is not running")

// ErrNoSupervisor is returned by methods of a Member whose supervisor is gone, and
// after Close.
var ErrNoSupervisor = errors.New("the supervisor is gone")

// errStopped says that a cell was not started since the supervisor stops.
var errStopped = errors.New("stopping")

// ExitError tells which cell ended Supervisor.Run, or did not end well when it was asked to.
type ExitError struct {
	Cell   int
	Status *os.ProcessState // nil if the cell could not be started
	Err    error            // wraps ErrNeverReady or ErrTooOften; nil if it failed while it drained
}

// Error tells the cell, what it did and its status.
func (e *ExitError) Error() string {
	what := "failed while it drained"
	if e.Err != nil {
		what = e.Err.Error()
	}
	if e.Status == nil {
		return fmt.Sprintf("cell %d %s", e.Cell, what)
	}
	return fmt.Sprintf("cell %d %s: %s", e.Cell, what, e.Status)
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode is what the supervisor should end with: the status of a cell that was
// never ready, since that says what is wrong with the call or the host (128 and the
// signal's number, as shells have it, if a signal ended it); otherwise 1.
func (e *ExitError) ExitCode() int {
	if e.Status == nil || !errors.Is(e.Err, ErrNeverReady) {
		return 1
	}
	if ws, ok := e.Status.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return max(e.Status.ExitCode(), 1)
}
