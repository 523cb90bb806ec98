// Package users is the user domain: the User itself, the sources it is joined
// from, and the Service that answers ids with finished JSON.
//
// # Way of a read
//
// Cached answers ids from the L1 cache: it never blocks and never allocates,
// so it may run on an event loop. Load answers the rest. It joins loads that are
// already on their way for the same ids, and asks the sources once for
// everything else: rows, attributes and members at the same time, each in one
// call per batch. The joined user is encoded once and kept as a Fragment, which
// every later reader shares.
//
// # Way of a write
//
// Create, Update and Delete commit in Rows first. Then, under the lock that also
// guards every insert into the L1 cache, they void the loads in progress for the
// id and remove its entry. So a read that starts after a write has returned never
// answers older data; a read that was already waiting may get either.
//
// Other caches of the same users, as in the other processes of one host, are told of
// the write through Config.Announce after that, and the caller hears of it when they
// have forgotten the id too (Service.Forget). So the promise holds for reads through
// any of them. While a write is in progress, one cache may already answer the new user
// and another still the old one.
//
// The join is not a snapshot: a read that overlaps a write may see the new row
// with the old attributes. The cache does not keep such a mix:
// the write removes it, or keeps it from coming in.
//
// # Failures
//
// Without Rows there is no answer: ErrUnavailable. Without attributes or members
// the user is answered with that field null, is marked Degraded, and is cached
// for at most a second. A caller whose context ends gets the error of its own
// context, and does not take the other waiters of a shared load with it.
//
// # Lifecycle and caveats
//
// NewService starts the cache's housekeeping goroutine; Close stops it and waits
// for every load. All methods of a Service are safe for concurrent use. A Batch
// is not: it belongs to one request at a time.
//
// Only writes that go through the same Service, or that are announced to it, are seen
// at once. What anybody else writes, and what could not be announced, is seen when the
// entry's time to live has passed.
package users
