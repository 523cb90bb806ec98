package affinity

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// guardEnv tells the restarted program which mask it was restarted for, so
// that a mask which does not stay ends in an error and not in a loop.
const guardEnv = "PINION_AFFINITY"

// Reexec puts this process on the CPUs of s. If every thread is there already
// it returns nil. Otherwise it starts the program again in place, with the
// same process id, arguments, environment and working directory, and does not
// return; the restarted program calls Reexec with the same set, and that call
// returns nil.
//
// Call it from main before anything else is opened or started: descriptors
// marked close-on-exec, which all of Go's are, and goroutines end here, while
// inherited descriptors stay, and pid-based handshakes (LISTEN_PID,
// NOTIFY_SOCKET) stay right. os.Args must be as the process got them.
//
// s may name only CPUs of [Allowed]: the error is otherwise a
// [*NotAllowedError], or [ErrEmptySet]. If the restarted program finds another
// mask than s, the error is a [*MaskError]. After any error the calling
// thread has its old mask and the program may go on.
func Reexec(s Set) error {
	guard, restarted := os.LookupEnv(guardEnv)
	if restarted { // not for the children of this process
		if err := os.Unsetenv(guardEnv); err != nil {
			return fmt.Errorf("remove %s: %w", guardEnv, err)
		}
	}
	got, found, err := stray(s)
	if err != nil {
		return err
	}
	if !found {
		return nil
	}
	// A guard with another list was left by someone else, and says nothing
	// about this set.
	if restarted && guard == s.String() {
		return fmt.Errorf("CPU mask after restart: %w", &MaskError{Want: s, Got: got})
	}
	allowed, err := Allowed()
	if err != nil {
		return err
	}
	if err := check(s, allowed); err != nil {
		return err
	}
	return execPinned(s)
}

// execPinned returns only on failure.
func execPinned(s Set) (err error) {
	// The program that execve(2) starts has the mask of the thread that
	// called it: the two must happen on the same thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	old, err := threadMask(0)
	if err != nil {
		return err
	}
	if err := setThreadMask(0, s); err != nil {
		return err
	}
	path := executable()
	err = unix.Exec(path, os.Args, append(os.Environ(), guardEnv+"="+s.String()))
	err = fmt.Errorf("restart %s: %w", path, err)
	return errors.Join(err, setThreadMask(0, old))
}

// executable returns a path that starts this very binary again.
//
// The kernel names a process after the last element of the path it starts,
// and "exe" is of no use in ps(1), so /proc/self/exe is taken only where the
// real path has become another file: the binary was deleted, or replaced by
// an upgrade, or the path means something else in this mount namespace.
func executable() string {
	const self = "/proc/self/exe"
	path, err := os.Readlink(self)
	if err != nil {
		return self
	}
	running, err := os.Stat(self)
	if err != nil {
		return self
	}
	if there, err := os.Stat(path); err != nil || !os.SameFile(running, there) {
		return self
	}
	return path
}
