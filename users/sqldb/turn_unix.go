//go:build unix

package sqldb

import (
	"errors"
	"os"
	"syscall"
)

// errLocked says that somebody else has the lock.
const errLocked = syscall.EWOULDBLOCK

func tryLock(f *os.File) error { return flock(f, syscall.LOCK_EX|syscall.LOCK_NB) }

// waitLock blocks its thread. There is one such thread in a process at most, and one
// more for each caller that gave up: a DB has one connection that writes.
func waitLock(f *os.File) error { return flock(f, syscall.LOCK_EX) }

// flock is flock(2). SQLite's own locks are of another kind, and on other files.
func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
