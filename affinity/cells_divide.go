package affinity

import (
	"cmp"
	"fmt"
	"slices"
)

// level is one way to divide CPUs into units that should stay together.
type level struct {
	name  string
	units []Set
}

// divide makes n of parts, of which there are fewer.
func (t *Topology) divide(parts []part, n int) []part {
	var all Set
	for _, p := range parts {
		all = all.Union(p.cpus)
	}
	var single []Set
	for cpu := range all.All() {
		single = append(single, SetOf(cpu))
	}
	// What a level does not know of is one L3 domain, and cores of one CPU.
	levels := []level{
		{"L3 caches", append(slices.Clone(t.L3), all)},
		{"cores", append(slices.Clone(t.Cores), single...)},
		{"CPUs", single},
	}

	units := make([]Set, len(parts))
	for i, p := range parts {
		units[i] = p.cpus
	}
	var divided []part
	for i, k := range apportion(units, n) {
		p := parts[i]
		if k == 1 {
			divided = append(divided, p)
			continue
		}
		for j, piece := range split(p.cpus, k, levels) {
			divided = append(divided, part{
				cpus:  piece.cpus,
				nodes: p.nodes,
				why:   fmt.Sprintf("%s, part %d of %d by %s", p.why, j+1, k, piece.by),
			})
		}
	}
	return divided
}

// piece is a part of a node, and the name of the level that made it.
type piece struct {
	cpus Set
	by   string
}

// split makes k parts of cpus, each of whole units of the first level that
// has so many, and inside its units by the next where it has fewer. The last
// level must have one unit a CPU.
func split(cpus Set, k int, levels []level) []piece {
	units := levels[0].of(cpus)
	if k <= len(units) {
		var pieces []piece
		for _, s := range gather(units, k) {
			pieces = append(pieces, piece{s, levels[0].name})
		}
		return pieces
	}
	var pieces []piece
	for i, n := range apportion(units, k) {
		if n == 1 {
			pieces = append(pieces, piece{units[i], levels[0].name})
			continue
		}
		pieces = append(pieces, split(units[i], n, levels[1:])...)
	}
	return pieces
}

// of returns what the units of l have of cpus, which they cover, by lowest
// CPU. Of units that overlap the first gets what is in both.
func (l level) of(cpus Set) []Set {
	var units []Set
	for _, u := range l.units {
		if own := u.Intersect(cpus); !own.Empty() {
			units = append(units, own)
			cpus = cpus.Difference(own)
		}
	}
	slices.SortFunc(units, func(a, b Set) int {
		i, _ := a.Min()
		j, _ := b.Min()
		return cmp.Compare(i, j)
	})
	return units
}

// apportion says into how many parts each unit is divided so that there are n
// together: one each, and one more for the unit whose parts are the largest
// as long as some are left. A unit is never in more parts than it has CPUs;
// n is at least the number of units, and at most that of their CPUs.
func apportion(units []Set, n int) []int {
	parts := make([]int, len(units))
	sizes := make([]int, len(units))
	for i, u := range units {
		parts[i], sizes[i] = 1, u.Len()
	}
	for range n - len(units) {
		most := 0
		for i := range units {
			if sizes[i]*parts[most] > sizes[most]*parts[i] {
				most = i
			}
		}
		parts[most]++
	}
	return parts
}

// gather makes k sets of neighbouring units, as equal in CPUs as goes without
// dividing one. k is at most the number of units.
func gather(units []Set, k int) []Set {
	total := 0
	for _, u := range units {
		total += u.Len()
	}
	sets := make([]Set, 0, k)
	taken := 0 // CPUs in sets, and in the one being made
	for ; k > 0; k-- {
		s := units[0]
		taken += s.Len()
		units = units[1:]
		// The first of k sets ends as near as can be to a k-th of what was
		// left for them; the others need a unit each.
		goal := total - (k-1)*(total-taken+s.Len())/k
		for len(units) > k-1 && (k == 1 || 2*(goal-taken) >= units[0].Len()) {
			s = s.Union(units[0])
			taken += units[0].Len()
			units = units[1:]
		}
		sets = append(sets, s)
	}
	return sets
}
