package handlers

import (
	"net"
	"time"
)

// AccessLog receives one entry for each request it wants. Both methods are
// called on the request path, from many goroutines; they must not block. It is
// also where an embedder hangs measurements of its own.
type AccessLog interface {
	// Wants reports whether a request that ended with status is to be
	// recorded. It is asked once per request.
	Wants(shard uint64, status int) bool
	// Record copies what it needs from e before it returns.
	Record(shard uint64, e *Entry)
}

// Entry is what is known of one request when its answer is built. Its slices
// and its address are valid while Record runs.
type Entry struct {
	Time      time.Time     // when the request had been read
	Duration  time.Duration // from there until the answer was built
	Handler   string        // the name of the endpoint
	Method    string        // "_OTHER" for one that HTTP does not define
	Path      []byte        // as it came
	Query     []byte        // as it came, without the question mark
	RequestID []byte
	Status    int
	Bytes     int      // of the answer's body
	Remote    net.Addr // of the peer; may be nil
	Panic     bool     // the handler panicked
}
