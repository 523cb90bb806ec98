package topology

import (
	"strings"

	"pinion/affinity"
)

// Report is a machine and what would be made of it. Its fields are only read,
// so that a Report may be written by several goroutines at once.
type Report struct {
	Topology affinity.Topology
	ReadErr  error // of affinity.ReadTopology, nil if all could be read

	// Allowed holds the CPUs that this process may use.
	Allowed affinity.Set

	// CPUs and Cells are the flags -cpus and -cells as they are in force,
	// such as "all" and "auto".
	CPUs, Cells string

	// Plan holds what they come to, or PlanErr says why it cannot be.
	Plan    []affinity.Cell
	PlanErr error
}

// unread returns what could not be read, one file each.
func (r *Report) unread() []string {
	if r.ReadErr == nil {
		return nil
	}
	return strings.Split(r.ReadErr.Error(), "\n")
}
