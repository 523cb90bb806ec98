package affinity

import (
	"errors"
	"fmt"
	"strings"
)

// ErrEmptySet is returned for a set without CPUs where there must be one.
var ErrEmptySet = errors.New("no CPU in the set")

// NotAllowedError says that CPUs were asked for which this process may not
// use: they are absent or offline, or outside its cpuset or its mask.
type NotAllowedError struct {
	CPUs    Set // asked for and not allowed
	Allowed Set // what is

	// Each of CPUs is in one of these, the first that fits, if
	// [Topology.Check] made the error; else all are empty.
	Absent        Set // no such CPU
	Offline       Set
	OutsideCPUSet Set // of the cgroup
	OutsideMask   Set // the present one of the process
}

// Error is one line, and of a long list tells the beginning.
func (e *NotAllowedError) Error() string {
	var whys []string
	for _, why := range []struct {
		cpus      Set
		one, many string
	}{
		{e.Absent, "does not exist", "do not exist"},
		{e.Offline, "is offline", "are offline"},
		{e.OutsideCPUSet, "is outside the cpuset", "are outside the cpuset"},
		{e.OutsideMask, "is outside the CPU mask", "are outside the CPU mask"},
	} {
		if !why.cpus.Empty() {
			whys = append(whys, say(why.cpus, why.one, why.many))
		}
	}
	if whys == nil {
		whys = []string{say(e.CPUs, "is not allowed here", "are not allowed here")}
	}
	return fmt.Sprintf("%s (allowed: %s)", strings.Join(whys, ", "), shortened(e.Allowed))
}

func say(cpus Set, one, many string) string {
	if cpus.Len() == 1 {
		return fmt.Sprintf("CPU %v %s", cpus, one)
	}
	return fmt.Sprintf("CPUs %s %s", shortened(cpus), many)
}

// shortened prints no more ranges than a line has room for.
func shortened(s Set) string {
	const most = 8
	ranges := strings.SplitN(s.String(), ",", most+1)
	if len(ranges) <= most {
		return s.String()
	}
	return fmt.Sprintf("%s,... (%d in all)", strings.Join(ranges[:most], ","), s.Len())
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
