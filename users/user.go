package users

import "time"

// StatusActive is the status of a user that the active query may answer. Other
// values have no meaning to this package.
const StatusActive = 1

// User is one user as joined from the sources. A zero LastLoginAt means that the
// user never logged in. Times have the precision of the source, microseconds for
// the SQL ones.
type User struct {
	ID          int64
	Name        string
	Email       string
	Phone       string
	Avatar      string
	Status      int
	CityID      int64
	LastLoginAt time.Time
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Attributes  []Attribute // sorted by key, keys are distinct
	Member      *Member     // nil: not a member
}

// Attribute is one free-form property of a user.
type Attribute struct {
	Key   string
	Value string
}

// Member is what the member service knows about a user. It is read-only here.
type Member struct {
	Level  string
	Points int64
}

// ActiveQuery selects active users: those with StatusActive that logged in at
// least once.
type ActiveQuery struct {
	// Cities restricts the answer to these city ids. Empty means all cities;
	// repeated ids count once.
	Cities []int64
	// Since leaves out users whose last login was earlier. Zero means any time.
	Since time.Time
	// Limit is the largest number of ids to answer. Zero or less answers none.
	Limit int
}
