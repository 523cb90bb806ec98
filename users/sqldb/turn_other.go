//go:build !unix

package sqldb

import (
	"errors"
	"os"
)

// errLocked says that somebody else has the lock.
var errLocked = errors.New("locked")

// Elsewhere SQLite's own way has to do.
func tryLock(*os.File) error  { return nil }
func waitLock(*os.File) error { return nil }
