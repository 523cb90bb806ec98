// Package stats counts what happens on the request path without a lock, an
// allocation or a cache line that two loops share.
//
// # Lifecycle
//
// A room registers its families on a Registry while it is set up, resolves every
// label combination it needs with With, and keeps the pointers. On the request path
// it calls Counter.Add or Histogram.Observe with the number of its loop (or its
// connection) as a hint. Whoever exports the numbers calls Registry.Snapshot, which
// adds up the shards.
//
// # Errors
//
// Registration never panics and never returns nil. A family that cannot be
// registered (a bad name, or a name taken by a family of another shape) is still a
// working vec, but it is left out of every snapshot, and Registry.Err tells. The
// program checks Err once, when all its rooms are set up.
//
// # Caveats
//
// With takes a lock and may allocate: it is not for the request path. A series lives
// as long as its Registry, so label values must come from a small closed set, never
// from a client. A snapshot is not one instant for all series: a counter read later
// may include a request that one read earlier does not. Each series by itself never
// goes back, and the buckets of a histogram always add up to its count.
package stats
