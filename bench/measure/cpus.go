package measure

import (
	"fmt"
	"os"

	"pinion/affinity"
)

// CPUs says who runs where.
type CPUs struct {
	Server affinity.Set
	Load   affinity.Set // generators, and what starts them
	All    affinity.Set // that may be used
}

// allowedVariable keeps the CPUs that a process might use before it restarted itself on
// some of them.
const allowedVariable = "PINION_BENCH_CPUS"

// ChooseCPUs reads two lists of CPUs, which must have none in common. An empty one for the
// server is the first CPU that may be used, an empty one for the load all others.
func ChooseCPUs(server, load string) (c CPUs, err error) {
	if c.Server, err = affinity.ParseSet(server); err != nil {
		return c, fmt.Errorf("-server-cpus: %w", err)
	}
	if c.Load, err = affinity.ParseSet(load); err != nil {
		return c, fmt.Errorf("-load-cpus: %w", err)
	}
	if c.All, err = affinity.ParseSet(os.Getenv(allowedVariable)); err != nil || c.All.Empty() {
		if c.All, err = affinity.Allowed(); err != nil {
			return c, err
		}
		if err := os.Setenv(allowedVariable, c.All.String()); err != nil {
			return c, err
		}
	}
	return c.fill()
}

// fill chooses what was not given, and checks all.
func (c CPUs) fill() (CPUs, error) {
	if c.Server.Empty() {
		if first, ok := c.All.Difference(c.Load).Min(); ok {
			c.Server = affinity.SetOf(first)
		}
	}
	if c.Load.Empty() {
		c.Load = c.All.Difference(c.Server)
	}
	switch {
	case c.Load.Empty() || c.Server.Empty():
		return c, fmt.Errorf("CPUs %v: want at least two, one for the server and one for the generator", c.All)
	case !c.Server.Intersect(c.Load).Empty():
		return c, fmt.Errorf("-server-cpus %v and -load-cpus %v have CPUs in common", c.Server, c.Load)
	case !c.Server.Union(c.Load).Difference(c.All).Empty():
		return c, fmt.Errorf("-server-cpus %v, -load-cpus %v: only %v may be used", c.Server, c.Load, c.All)
	}
	return c, nil
}
