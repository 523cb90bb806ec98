// Package users is the user domain: the User itself, the sources it is joined
// from, and the Service that answers ids with finished JSON.
//
// # Way of a read
//
// Cached answers ids from the L1 cache: it never blocks and never allocates,
// so it may run on an event loop. Load answers the rest. It joins loads that are
// already on their way for the same ids. For everything else it asks the cache that
// instances share (L2), if there is one, and for the rest of that the sources: rows,
// attributes and members at the same time. The joined user is encoded once and kept as a
// Fragment, which every later reader shares.
//
// The questions of all loads go through one batcher per source. An idle source is asked
// at once; while a query is out the next one gathers, so that queries get larger with the
// load, and not more.
//
// # Way of a write
//
// Create, Update and Delete commit in Rows first, and then in the AttributeWriter, if
// there is one. Then, under the lock that also guards every insert into the L1 cache, they
// void the loads in progress for the id and remove its entry. Then the shared cache drops
// it, and pushes the removal to all instances; and L1 forgets once more, because a load
// may have found the older user in the shared cache meanwhile. So a read that starts after
// a write has returned never answers older data; a read that was already waiting may get
// either.
//
// Other caches of the same users, as in the other processes of one host, are told of
// the write through Config.Announce after that, and the caller hears of it when they
// have forgotten the id too (Service.Forget). So the promise holds for reads through
// any of them. While a write is in progress, one cache may already answer the new user
// and another still the old one.
//
// The join is not a snapshot: a read that overlaps a write may see the new row
// with the old attributes. No cache keeps such a mix:
// the write removes it, or keeps it from coming in.
//
// # Coherence of the shared cache
//
// An entry of the shared cache is stored under a lease that was granted before the sources
// were read, and that every write ends. Other instances forget an id when the removal is
// pushed to them. While it may not be (SetCoherent) the shared cache is neither read nor
// filled, and L1 entries live for less than a second. A removal that could not be sent is
// written into the VoidLog, which every instance looks at once a second, and an instance
// that knows of one does without the shared cache until somebody has made up for it. If
// that log cannot be written either, the write is answered with ErrUnknownOutcome.
//
// # Failures
//
// Before each source stands a guard: a limit of calls in flight, a timeout, a breaker
// (a caller that leaves is no failure, nor is a write that is refused) and a budget of
// retries for reads. The shared cache can fail in any way and costs time at most.
//
// Without Rows there is no new answer. Users that L1 has held in the last ten minutes are
// answered as they were, marked DegradedStale; for others there is ErrUnavailable.
// Without attributes or members the user is answered with that field null, is marked
// Degraded, and is cached for at most a second, and not shared. A load waits for them for
// no more than four fifths of the time that its first caller has. A caller whose context
// ends gets the error of its own context, and does not take the other waiters of a shared
// load with it.
//
// # Lifecycle and caveats
//
// NewService starts the cache's housekeeping goroutine, and one that looks after the
// shared cache; Close stops them and waits for every load and every call of a source. All
// methods of a Service are safe for concurrent use. A Batch is not: it belongs to one
// request at a time.
//
// Only writes that go through the same Service, that are announced to it, or whose removal
// the shared cache pushes, are seen soon. What anybody else writes, and what could not be
// announced, is seen when the entry's time to live has passed.
package users
