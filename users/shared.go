package users

import "context"

// SharedCache is a cache of fragments that all instances share: the second layer (L2).
// It holds nothing that the sources could not give again.
//
// A fill is allowed by a lease: Lookup grants one where nothing is stored, Void ends it,
// and Store keeps only what is under a lease that still holds. So a load that read the
// sources before a write cannot bring old data back after it.
//
// The rules of Rows about ctx and concurrency hold. Only a Service that hears of every
// removal may read or fill the cache: see Service.SetCoherent.
type SharedCache interface {
	// Lookup answers ids, in their order. Where nothing is stored it grants a lease,
	// unless somebody else holds the one of that id.
	Lookup(ctx context.Context, ids []int64) ([]Shared, error)
	// Store keeps each entry whose lease still holds, and uses the lease up; entries whose
	// lease has ended are dropped, which is no error. It does not keep the JSON itself.
	Store(ctx context.Context, entries []SharedEntry) error
	// Void drops whatever is stored for id, "not there" too, and its lease, and tells
	// every instance to forget the id.
	Void(ctx context.Context, id int64) error
}

// SharedState says what a SharedCache holds for an id.
type SharedState uint8

// The states. The zero value is a miss.
const (
	SharedMiss    SharedState = iota // nothing
	SharedUser                       // a user
	SharedMissing                    // that there is no such user
)

// Shared is the answer of a SharedCache for one id.
type Shared struct {
	State SharedState
	JSON  []byte // of a user; the caller owns it, and nobody else may write to it
	Lease Lease  // of a miss; 0: somebody else is filling it
}

// SharedEntry is what a SharedCache is given to keep.
type SharedEntry struct {
	ID    int64
	Lease Lease
	JSON  []byte // nil: there is no such user. Only lent
}

// Lease is the right to store what was read after the lease was granted. 0 is none.
type Lease uint64

// AttributeWriter stores attributes outside of Rows, after Rows has committed.
// The rules of Rows about ctx, concurrency and ownership hold.
type AttributeWriter interface {
	// PutAttributes replaces all attributes of id. An empty list leaves none.
	PutAttributes(ctx context.Context, id int64, attrs []Attribute) error
	// AddAttributes stores attrs only if id has no attributes: others that are there stay,
	// which is no error. Looking and storing are one step, so it never undoes a
	// PutAttributes that comes in between. An empty list changes nothing.
	AddAttributes(ctx context.Context, id int64, attrs []Attribute) error
	// DropAttributes removes what is stored for id, if anything.
	DropAttributes(ctx context.Context, id int64) error
	// Ready returns an error if a write is known to fail now. It must be quick.
	Ready(ctx context.Context) error
}

// VoidLog remembers the ids that a SharedCache could not be told to drop, where any
// instance can find them. The rules of Rows about ctx and concurrency hold.
type VoidLog interface {
	// AddVoid stores id durably.
	AddVoid(ctx context.Context, id int64) error
	// Voids returns up to limit entries, oldest first.
	Voids(ctx context.Context, limit int) ([]Void, error)
	// DropVoids removes the entries of these sequence numbers. Those that are gone
	// already are no error.
	DropVoids(ctx context.Context, seqs []int64) error
}

// Void is one entry of a VoidLog: one removal that is still owed.
type Void struct {
	Seq int64
	ID  int64
}
