// Package rediscache keeps in Redis what the instances of pinion share: fragments (a
// Cache is users.SharedCache), and the attributes of users (users.AttributeSource and
// users.AttributeWriter).
//
// # Keys
//
//	user:attr:{id}   hash    the attributes; the record itself, not a copy
//	user:frag:{id}   string  a fragment, 10 minutes plus up to 2 at random, or that there is no
//	                         such user, 30 seconds plus up to 6 at random
//	user:lease:{id}  string  token of who may store the one above, 10 seconds
//	user:void:{id}   string  time of the last removal, in microseconds of the server's clock, 60 seconds
//
// {id} stands for the number alone, without braces. A fragment begins with the version
// of its encoding and a checksum over id, content and the run of Redis. A value that is
// damaged, written by another version, stored under another user's key, or brought back
// from disk by a Redis that was started again, is a miss: removals may be missing there.
//
// # Leases
//
// Lookup grants a lease (SET NX) where it finds nothing: to all ids of a call the same one, which
// is told from later ones for the same id. Store keeps a fragment if the lease still holds, and
// uses it up. Each is one script for a whole batch. Void deletes the lease with the rest, also in
// one script. So what was read before a write cannot come in after it. A process
// that takes a lease and dies keeps others from storing for 10 seconds, never from
// answering.
//
// # Tracking
//
// Run holds one connection on which Redis pushes every change of user:void:*. Only
// removals write there: a fill makes no noise. When one of those keys expires Redis
// pushes it too, so a minute after each removal there is one more, for nothing.
//
// OnTracking says whether the pushes can be trusted. It says no before anything else,
// and as soon as the connection is lost or does not answer a PING, sent every 250 ms,
// within 500 ms. It says yes after a new connection has confirmed tracking and answered
// a PING. What was pushed in between is lost: the receiver of the news must forget all.
// rueidis would reconnect by itself, and then its PING succeeds as if nothing had been
// missed; so each connection gets a client of its own that can dial only once.
//
// # Redis down, slow, full, or not Redis
//
// Open does not need a Redis that answers. While none does, calls fail at once with
// ErrDown; Run finds out when it is back. When Redis stops answering, Run closes all
// connections, which frees whoever waits. A call ends at once with its context or with
// Timeout; up to 256 are in flight, abandoned ones too, and others wait.
//
// When Redis is full (maxmemory, noeviction) Store, PutAttributes and AddAttributes
// fail, Lookup grants no leases, and Void works.
//
// rueidis panics, on a goroutine of its own, on replies that it did not ask for and on
// lengths that cannot be. Each connection therefore checks the framing of the replies
// before rueidis sees them, and fails as a broken one when they make no sense. A string of
// more than 64 MiB or a hash of half a million fields makes none either.
//
// Attributes of a key that holds no hash, or one of more than 1000 fields or 256 KiB, are
// an error of that user only (users.PartError).
//
// No command is sent twice: a write that was cut off may have been done.
//
// Redis 6 or later is needed, one server: no cluster and no sentinels.
package rediscache
