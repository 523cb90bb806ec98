//go:build !linux

package testserver

import (
	"os"
	"syscall"
)

// attributes give the server a process group of its own. There is no signal at the death
// of the parent here: a test binary that is killed leaves its servers behind.
func attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return attr
}

// childrenOf knows none: there is no portable way to list them.
func childrenOf(int) []int { return nil }
