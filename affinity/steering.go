package affinity

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Steering says which of the listeners of an SO_REUSEPORT group gets a
// connection, by the CPU on which the kernel handles its first packet. That
// is the one whose network queue took it, or to which RPS or RFS passed it
// on. CPUs in no target are left to the kernel's own choice, a hash of
// addresses and ports.
type Steering []Target

// Target sends connections of some CPUs to some listeners.
type Target struct {
	// CPUs are in no other target.
	CPUs Set

	// First and Count are a range of the group's listeners, numbered from 0
	// in the order in which they began to listen. Each new connection goes
	// to one of them at random if Count is more than 1; 0 is not allowed.
	First, Count int
}

// maxListeners is what the kernel's group can hold (reuseport_grow in
// net/core/sock_reuseport.c).
const maxListeners = 1<<16 - 1

// ErrSteeringTooLarge is returned for a [Steering] that a kernel's program
// cannot hold: its CPU ranges are many thousands.
var ErrSteeringTooLarge = errors.New("too many CPU ranges to steer by")

// route is where connections of the CPUs from lo to the next route's lo go.
type route struct {
	lo   uint32
	kind routeKind
	// first is the index of a listener: that of lo, for oneEach.
	first, count uint32
}

type routeKind int

const (
	byHash  routeKind = iota // any listener
	fixed                    // listener first
	oneEach                  // first for lo, first+1 for lo+1, and so on
	random                   // one of count, from first on
)

// routes returns s as routes by ascending lo, the first of which starts at 0
// and no two neighbours of which are the same.
func (s Steering) routes() ([]route, error) {
	type cpuRoute struct {
		cpu int
		route
	}
	var cpus []cpuRoute
	for i, t := range s {
		if t.First < 0 || t.Count < 1 || t.Count > maxListeners || t.First > maxListeners-t.Count {
			return nil, fmt.Errorf("steering target %d: no range of listeners: %d from %d on", i, t.Count, t.First)
		}
		kind := fixed
		if t.Count > 1 {
			kind = random
		}
		for cpu := range t.CPUs.All() {
			cpus = append(cpus, cpuRoute{cpu, route{uint32(cpu), kind, uint32(t.First), uint32(t.Count)}})
		}
	}
	slices.SortFunc(cpus, func(a, b cpuRoute) int { return cmp.Compare(a.cpu, b.cpu) })

	var routes []route
	next := 0 // the CPU after the last route's
	for _, c := range cpus {
		switch {
		case c.cpu < next:
			return nil, fmt.Errorf("steering: CPU %d is in two targets", c.cpu)
		case c.cpu > next:
			routes = append(routes, route{lo: uint32(next)})
		}
		if c.cpu > next || next == 0 || !routes[len(routes)-1].extend(c.route) {
			routes = append(routes, c.route)
		}
		next = c.cpu + 1
	}
	return append(routes, route{lo: uint32(next)}), nil
}

// extend makes r go on to n, which is for the CPU after r's last, if one route
// can say both. A loop on each CPU, the usual case, then is one route however
// many there are.
func (r *route) extend(n route) bool {
	switch {
	case r.kind == oneEach:
		return n.kind == fixed && n.first-n.lo == r.first-r.lo
	case r.kind == n.kind && r.first == n.first && r.count == n.count:
		return true
	case r.kind == fixed && n.kind == fixed && n.lo == r.lo+1 && n.first == r.first+1:
		r.kind = oneEach
		return true
	}
	return false
}
