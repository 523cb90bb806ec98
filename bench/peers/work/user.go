package work

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxIDs is how many users may be asked for at once.
const MaxIDs = 256

// User is a user as pinion answers one.
type User struct {
	ID          int64             `json:"id"`
	Name        string            `json:"name"`
	Email       string            `json:"email"`
	Phone       string            `json:"phone"`
	Avatar      string            `json:"avatar"`
	Status      int               `json:"status"`
	CityID      int64             `json:"city_id"`
	LastLoginAt *time.Time        `json:"last_login_at"`
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
	Attributes  map[string]string `json:"attributes"`
	Member      *Member           `json:"member"`
}

// Member is what the member service knows of a user.
type Member struct {
	Level  string `json:"level"`
	Points int64  `json:"points"`
}

// Found answers a request for users: those there are, in the order asked, and the ids of
// the others.
type Found struct {
	Users   []*User `json:"users"`
	Missing []int64 `json:"missing"`
}

// Store keeps users by id. It does not change and is safe for concurrent use.
type Store struct {
	users []*User
	byID  map[int64]*User
}

// Load reads the users of a file.
func Load(path string) (*Store, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Parse reads users from an answer of pinion.
func Parse(answer []byte) (*Store, error) {
	var found Found
	if err := json.Unmarshal(answer, &found); err != nil {
		return nil, err
	}
	s := &Store{users: found.Users, byID: make(map[int64]*User, len(found.Users))}
	for _, u := range found.Users {
		s.byID[u.ID] = u
	}
	return s, nil
}

// Users returns all users. They belong to the store.
func (s *Store) Users() []*User { return s.users }

// User returns a user, or nil.
func (s *Store) User(id int64) *User { return s.byID[id] }

// Find returns the users of some ids.
func (s *Store) Find(ids []int64) Found {
	found := Found{Users: make([]*User, 0, len(ids)), Missing: []int64{}}
	for _, id := range ids {
		if u := s.byID[id]; u != nil {
			found.Users = append(found.Users, u)
		} else {
			found.Missing = append(found.Missing, id)
		}
	}
	return found
}

// ParseIDs appends to dst the ids of a list like 1,2,3, a repeated one once.
func ParseIDs(dst []int64, list string) ([]int64, error) {
	n := strings.Count(list, ",") + 1
	if n > MaxIDs {
		return nil, fmt.Errorf("%d ids, want at most %d", n, MaxIDs)
	}
	dst = slices.Grow(dst, n)
	for part := range strings.SplitSeq(list, ",") {
		id, err := ParseID(part)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(dst, id) { // faster than a set for so few
			dst = append(dst, id)
		}
	}
	return dst, nil
}

// ParseID reads a positive number.
func ParseID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return 0, fmt.Errorf("want a positive number, got %q", text)
	}
	return id, nil
}
