// Package ctxpool lends out values and buffers that requests use again and
// again, so that a request in steady state allocates nothing.
//
// # Lifecycle
//
//  1. Get (or Small, or Large) lends a value to one user.
//  2. The user alone reads and writes it.
//  3. Put takes it back. From here on the value, and every view of its bytes, is
//     somebody else's.
//
// # Caveats
//
// Race builds watch step 3: what was put is overwritten (see [Poison]), and a
// value that is put twice panics. Other builds check nothing and pay nothing.
//
// A [Pool] keeps one value per slot for as long as the pool lives, whatever its
// size: a reset should let go of what has grown far beyond the usual.
package ctxpool
