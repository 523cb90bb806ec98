//go:build !linux

package openloop

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// Run is for Linux only.
func Run(context.Context, Config) (*Result, error) {
	return nil, fmt.Errorf("load generator on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
