package users

import (
	"context"
	"fmt"
)

// Rows is the SQL side of a user. It owns all writes. With an AttributeWriter beside it,
// it need not store the attributes it is given, but they are part of what a key of Create
// stands for, and an Update that names nothing else moves UpdatedAt.
//
// Every method must return soon after its ctx ends: until then it takes one of the calls
// that may be in flight, and Close waits for it.
// Methods are called concurrently. Arguments are only lent; results belong to the
// caller.
type Rows interface {
	// Users returns the rows of the ids that exist, in any order. Attributes and
	// Member are left empty, and the address is never read.
	Users(ctx context.Context, ids []int64) ([]User, error)
	// ActiveIDs returns the matching ids, newest login first, ties by higher id.
	ActiveIDs(ctx context.Context, q ActiveQuery) ([]int64, error)
	// Address returns the user's address, empty when none was given, or ErrNotFound.
	Address(ctx context.Context, id int64) (string, error)
	// Create stores a new user durably and returns its id. Ids are never reused. A Key seen
	// before gets the id it stands for, or ErrKeyReused. An id beside an error says that a
	// user may have been stored under it. UpdatedAt is CreatedAt until the first Update.
	Create(ctx context.Context, u NewUser) (int64, error)
	// Update changes what the patch names, durably, or returns ErrNotFound. The patch
	// names at least one field. It makes the user's UpdatedAt later than it was.
	// ErrUnknownOutcome of any write says that it may have been stored.
	Update(ctx context.Context, id int64, p Patch) error
	// Delete removes the user and all that belongs to it, or returns ErrNotFound.
	Delete(ctx context.Context, id int64) error
	// Ping says whether the source can answer now.
	Ping(ctx context.Context) error
}

// AttributeSource answers attributes for many users in one call. Ids without
// attributes may be left out of the map. Keys of one user are distinct and come
// in any order. The rules of Rows about ctx and ownership hold.
//
// What is wrong with single users, and not with the source, is a *PartError: the map
// beside it is right for all other ids. After any other error the map is not looked at.
type AttributeSource interface {
	Attributes(ctx context.Context, ids []int64) (map[int64][]Attribute, error)
}

// PartError says that a source has answered, but not for these ids. Only their users are
// Degraded, and for the breaker it is an answer.
type PartError struct {
	IDs []int64
	Err error // why, of one of them
}

// Error names the first id and how many there are.
func (e *PartError) Error() string {
	if len(e.IDs) == 0 {
		return fmt.Sprintf("no answer for some users: %v", e.Err)
	}
	return fmt.Sprintf("no answer for %d users, of them user %d: %v", len(e.IDs), e.IDs[0], e.Err)
}

// Unwrap returns Err.
func (e *PartError) Unwrap() error { return e.Err }

// MemberSource answers memberships for many users in one call. Ids that are no
// members are left out of the map. The rules of Rows about ctx and ownership hold.
type MemberSource interface {
	Members(ctx context.Context, ids []int64) (map[int64]Member, error)
}
