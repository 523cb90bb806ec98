//go:build !linux

package affinity

import (
	"errors"
	"fmt"
	"runtime"
)

// Allowed needs Linux; the error wraps [errors.ErrUnsupported].
func Allowed() (Set, error) { return Set{}, unsupported("read the CPU mask") }

// Pin needs Linux; the error wraps [errors.ErrUnsupported].
func Pin(s Set) error { return unsupported("pin to CPUs " + s.String()) }

// Reexec needs Linux; the error wraps [errors.ErrUnsupported].
func Reexec(s Set) error { return unsupported("restart on CPUs " + s.String()) }

func unsupported(what string) error {
	return fmt.Errorf("%s on %s: %w", what, runtime.GOOS, errors.ErrUnsupported)
}
