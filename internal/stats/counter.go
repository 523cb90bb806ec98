package stats

import "sync/atomic"

// Counter is a number that only grows. It is safe for concurrent use.
type Counter struct {
	cells []*atomic.Uint64 // one per shard; the length is a power of two
	read  atomic.Pointer[func() uint64]
}

// Add adds n to the cell that shard picks. Any value of shard is right; callers that
// run on different CPUs should pass different ones. It takes no lock and does not
// allocate.
func (c *Counter) Add(shard, n uint64) {
	c.cells[shard&uint64(len(c.cells)-1)].Add(n)
}

// Value is the sum over all shards, and of what Func gave.
func (c *Counter) Value() uint64 {
	var sum uint64
	for _, cell := range c.cells {
		sum += cell.Load()
	}
	if read := c.read.Load(); read != nil {
		sum += (*read)()
	}
	return sum
}

// CounterVec is a family of counters that differ in their label values. It is safe
// for concurrent use.
type CounterVec struct {
	vec[Counter]
}

// With returns the counter of these label values, in the order of the labels at
// registration, and makes it at the first call. The same values give the same
// Counter. It takes a lock: resolve at setup and keep the result. A wrong number of
// values gives a counter that is in no snapshot, and is reported by Registry.Err.
func (v *CounterVec) With(values ...string) *Counter {
	return v.with(values, func() *Counter {
		cells := v.reg.alloc(1)
		c := &Counter{cells: make([]*atomic.Uint64, len(cells))}
		for i := range cells {
			c.cells[i] = &cells[i][0]
		}
		return c
	})
}

// Func has the counter of these label values read from somewhere that counts by
// itself: read is called by every Snapshot, possibly by several at once, must be
// quick, and never return less than before.
func (v *CounterVec) Func(read func() uint64, values ...string) {
	v.With(values...).read.Store(&read)
}

func (v *CounterVec) collect() []Series {
	return v.series(func(c *Counter, s *Series) { s.Value = float64(c.Value()) })
}
