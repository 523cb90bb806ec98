// Package topology writes what "server topology" prints: the CPUs, caches and
// memory of the machine, what the cgroup leaves of them, and the cells that the
// given flags would make of it, as a table for people and as JSON for programs.
//
// It only writes. Package affinity has read the machine and made the plan before,
// with the same calls that serving makes, so that the report cannot say anything
// else than what would happen.
package topology
