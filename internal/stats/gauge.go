package stats

import "sync/atomic"

// GaugeVec is a family of numbers that go up and down and are read when scraped. It
// is safe for concurrent use.
type GaugeVec struct {
	vec[gauge]
}

type gauge struct {
	read atomic.Pointer[func() float64]
}

// Func sets where the number for these label values comes from. read is called by
// every Snapshot, possibly by several at once, must be quick, and may use the
// Registry. A later Func for the same values replaces the earlier one.
func (v *GaugeVec) Func(read func() float64, values ...string) {
	v.with(values, func() *gauge { return new(gauge) }).read.Store(&read)
}

func (v *GaugeVec) collect() []Series {
	return v.series(func(g *gauge, s *Series) {
		// A scrape can come between the making of the series and the Store.
		if read := g.read.Load(); read != nil {
			s.Value = (*read)()
		}
	})
}
