//go:build unix

package transport

import "syscall"

// descriptors returns how many files this process may have open. The Go
// runtime has raised the soft limit to the hard one by then.
func descriptors() (n uint64, known bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false
	}
	return uint64(limit.Cur), true
}
