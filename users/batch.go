package users

// Batch is one request for many users, and its answer. The zero value is ready.
// It is meant to be reused: a request fills IDs, calls Cached and, if that left
// something, Load; after Reset the next request may have it. It must not be used
// by two goroutines at once.
type Batch struct {
	// IDs are the ids asked for. They must be distinct.
	IDs []int64
	// Fragments[i] answers IDs[i]; nil means not answered yet.
	Fragments []*Fragment
	// Shard picks the counter cells this request adds to: the number of the loop
	// or of the connection. Any value is right, a stable one is fast.
	Shard uint64
}

// Reset empties the batch and keeps its memory. It drops the references to the
// fragments, so that a pooled batch does not keep evicted ones alive.
func (b *Batch) Reset() {
	clear(b.Fragments)
	b.IDs, b.Fragments, b.Shard = b.IDs[:0], b.Fragments[:0], 0
}

// fit makes Fragments as long as IDs and empties it. It allocates only when the
// batch is larger than any it held before.
func (b *Batch) fit() {
	if cap(b.Fragments) < len(b.IDs) {
		b.Fragments = make([]*Fragment, len(b.IDs))
		return
	}
	b.Fragments = b.Fragments[:len(b.IDs)]
	clear(b.Fragments)
}
