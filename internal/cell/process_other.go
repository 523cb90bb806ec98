//go:build !linux

package cell

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

func attributes() *syscall.SysProcAttr { return nil }

func controlPair() (ours, theirs *os.File, err error) { return nil, nil, unsupported() }

func streamPair() (ours, theirs *os.File, err error) { return nil, nil, unsupported() }

func unsupported() error {
	return fmt.Errorf("several cells on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
