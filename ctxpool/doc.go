// Package ctxpool lends out values that requests use again and again, so that a
// request in steady state allocates nothing.
//
// # Lifecycle
//
//  1. Get lends a value to one user.
//  2. The user alone reads and writes it.
//  3. Put takes it back. From here on the value, and every view of its bytes, is
//     somebody else's.
//
// # Caveats
//
// Race builds watch step 3: a value that is put twice panics. Other builds check
// nothing and pay nothing.
//
// A [Pool] keeps one value per slot for as long as the pool lives, whatever its
// size: a reset should let go of what has grown far beyond the usual.
//
// # Why not a bare sync.Pool?
//
// Because it is emptied by garbage collection. BenchmarkPool on two busy cores of
// an AMD EPYC, a Get and Put of a 16 KiB scratch, bare sync.Pool in brackets:
// 17 ns alone (19), 22 ns on both cores (22), 48 ns with one hint for both
// (36: sync.Pool wins where hints collide), and 1.0 µs with no allocation right
// after two collections (20 µs and four allocations).
//
// Hints collide where they are ids of connections and connections move between
// CPUs, as they do on fasthttp.Server; the gain is for hints that are numbers of
// loops, each on a CPU of its own.
package ctxpool
