package affinity

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// guardEnv tells the restarted program which placement it was restarted for,
// so that one which does not stay ends in an error and not in a loop.
const guardEnv = "PINION_AFFINITY"

// Reexec puts this process where p says. If every thread has the mask already,
// and this one the memory policy, it returns nil. Otherwise it starts the
// program again in place, with the same process id, arguments, environment
// and working directory, and does not return; the restarted program calls
// Reexec with the same placement, and that call returns nil.
//
// Call it from main before anything else is opened or started: descriptors
// marked close-on-exec, which all of Go's are, and goroutines end here, while
// inherited descriptors stay, and pid-based handshakes (LISTEN_PID,
// NOTIFY_SOCKET) stay right. os.Args must be as the process got them.
//
// p.CPUs may name only CPUs of [Allowed]: the error is otherwise a
// [*NotAllowedError], or [ErrEmptySet]. Where [MemoryPolicy] returns an error
// for p.Memory, so does Reexec. If the restarted program finds another mask
// than p.CPUs, the error is a [*MaskError]. After any error the calling thread
// has its old mask and policy, and the program may go on.
func Reexec(p Placement) error {
	guard, restarted := os.LookupEnv(guardEnv)
	if restarted { // not for the children of this process
		if err := os.Unsetenv(guardEnv); err != nil {
			return fmt.Errorf("remove %s: %w", guardEnv, err)
		}
	}
	differs, err := misplaced(p)
	if err != nil || differs == nil {
		return err
	}
	// A guard with another placement was left by someone else, and says
	// nothing about this one.
	if restarted && guard == p.String() {
		return fmt.Errorf("after restart: %w", differs)
	}
	allowed, err := Allowed()
	if err != nil {
		return err
	}
	if err := check(p.CPUs, allowed); err != nil {
		return err
	}
	return execPlaced(p)
}

// misplaced tells in what this process differs from p, nil if in nothing.
func misplaced(p Placement) (differs, err error) {
	mask, found, err := stray(p.CPUs)
	if err != nil {
		return nil, err
	}
	if found {
		return &MaskError{Want: p.CPUs, Got: mask}, nil
	}
	if p.Memory.Empty() {
		return nil, nil
	}
	// Only a thread's own policy can be asked for. Before anything has set
	// one, all threads have that of the first.
	policy, err := threadPolicy()
	if err != nil {
		return nil, err
	}
	if !policy.prefers(p.Memory) {
		return fmt.Errorf("asked for memory of nodes %v, have policy %d with nodes %q",
			p.Memory, policy.mode, policy.nodes), nil
	}
	return nil, nil
}

// execPlaced returns only on failure.
func execPlaced(p Placement) error {
	// The program that execve(2) starts has the mask and the policy of the
	// thread that called it: all must happen on the same thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	restore, err := place(p)
	if err != nil {
		return err
	}
	path, err := Executable()
	if err != nil {
		return errors.Join(err, restore())
	}
	err = unix.Exec(path, os.Args, append(os.Environ(), guardEnv+"="+p.String()))
	err = fmt.Errorf("restart %s: %w", path, err)
	return errors.Join(err, restore())
}

// Executable returns a path by which this process starts the very program that
// it runs, also after the file was deleted or replaced, as by an upgrade; what
// [os.Executable] returns then starts nothing, or something else. It holds for
// the moment: ask again before each start.
//
// The kernel names a process after the last element of the path it starts,
// and "exe" is of no use in ps(1), so /proc/self/exe is returned only where the
// real path has become another file, or means another in this mount namespace.
// It is a path for this process and what it forks, not for others. The error
// is that of a system without procfs.
func Executable() (string, error) {
	const self = "/proc/self/exe"
	path, err := os.Readlink(self)
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	running, err := os.Stat(self)
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if there, err := os.Stat(path); err != nil || !os.SameFile(running, there) {
		return self, nil
	}
	return path, nil
}
