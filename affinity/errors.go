package affinity

import (
	"errors"
	"fmt"
)

// ErrEmptySet is returned by [Pin] and [Reexec] for a set without CPUs.
var ErrEmptySet = errors.New("no CPU in the set")

// NotAllowedError says that CPUs were asked for which this process may not
// use: they are absent or offline, or outside its cpuset or its mask.
type NotAllowedError struct {
	CPUs    Set // asked for and not allowed
	Allowed Set // what is
}

func (e *NotAllowedError) Error() string {
	if e.CPUs.Len() == 1 {
		return fmt.Sprintf("CPU %v is not allowed here (allowed: %v)", e.CPUs, e.Allowed)
	}
	return fmt.Sprintf("CPUs %v are not allowed here (allowed: %v)", e.CPUs, e.Allowed)
}

// MaskError says that the kernel took a mask and then showed another: someone
// else changes it, or a cpuset became smaller meanwhile.
type MaskError struct {
	Want, Got Set
}

func (e *MaskError) Error() string {
	return fmt.Sprintf("asked for CPU mask %v, have %v", e.Want, e.Got)
}

// check returns the error that keeps want from being set where allowed is the
// present mask.
func check(want, allowed Set) error {
	if want.Empty() {
		return ErrEmptySet
	}
	if extra := want.Difference(allowed); !extra.Empty() {
		return &NotAllowedError{CPUs: extra, Allowed: allowed}
	}
	return nil
}
