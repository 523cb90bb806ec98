package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"pinion/users"
)

// The made-up people signed up in 2025 and logged in before 2026. The dates are fixed,
// so that the same number of users is the same data on every day.
const (
	demoYearStart = 1735689600 // 2025-01-01T00:00:00Z, unix seconds
	demoYear      = 365 * 24 * time.Hour
	demoCities    = 50
	demoProgress  = 1000 // users between two calls of progress
)

const (
	selectEverUsed = `SELECT EXISTS (SELECT 1 FROM users) OR EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'users' AND seq > 0)`
	insertDemoUser = `INSERT INTO users
(id, name, email, phone, avatar, status, city_id, last_login_at, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	insertMember  = `INSERT INTO members (user_id, level, points) VALUES (?, ?, ?)`
	insertAddress = `INSERT INTO addresses (user_id, address) VALUES (?, ?)`
)

// Fill puts n made-up users with the ids 1 to n into an empty database. Their data is
// the same at every call, and that of one user does not depend on n. It reports whether
// it filled: a database that holds users, or ever did, is left as it is. All users
// appear at once, at the end, or none when Fill fails or ctx ends.
//
// progress, if not nil, is called now and then on the caller's goroutine.
func (db *DB) Fill(ctx context.Context, n int, progress func(done, total int)) (filled bool, err error) {
	if n <= 0 {
		return false, nil
	}
	err = inTx(ctx, db.write, func(tx *sql.Tx) error {
		var used bool
		if err := tx.QueryRowContext(ctx, selectEverUsed).Scan(&used); err != nil || used {
			return err
		}
		filled = true
		return fill(ctx, tx, n, progress)
	})
	if err != nil {
		return false, fmt.Errorf("fill database with %d users: %w", n, err)
	}
	return filled, nil
}

func fill(ctx context.Context, tx *sql.Tx, n int, progress func(done, total int)) error {
	var stmts [4]*sql.Stmt
	for i, text := range []string{insertDemoUser, insertAttribute, insertMember, insertAddress} {
		stmt, err := tx.PrepareContext(ctx, text)
		if err != nil {
			return err
		}
		defer stmt.Close() //nolint:errcheck // a statement that only inserts has nothing left to say
		stmts[i] = stmt
	}
	user, attribute, member, address := stmts[0], stmts[1], stmts[2], stmts[3]
	var m demoMaker
	m.init()
	for id := int64(1); id <= int64(n); id++ {
		u, home := m.user(id)
		login := sql.NullInt64{Int64: u.LastLoginAt.UnixMicro(), Valid: !u.LastLoginAt.IsZero()}
		_, err := user.ExecContext(ctx, id, u.Name, u.Email, u.Phone, u.Avatar, u.Status, u.CityID,
			login, u.CreatedAt.UnixMicro(), u.UpdatedAt.UnixMicro())
		if err != nil {
			return err
		}
		for _, a := range u.Attributes {
			if _, err := attribute.ExecContext(ctx, id, a.Key, a.Value); err != nil {
				return err
			}
		}
		if u.Member != nil {
			if _, err := member.ExecContext(ctx, id, u.Member.Level, u.Member.Points); err != nil {
				return err
			}
		}
		if _, err := address.ExecContext(ctx, id, home); err != nil {
			return err
		}
		if progress != nil && (id%demoProgress == 0 || id == int64(n)) {
			progress(int(id), n)
		}
	}
	return nil
}

// demoMaker makes people up.
type demoMaker struct {
	scripts    []script
	odd        []string
	levels     []string
	attributes []demoAttribute
	streets    []string
	notes      []string
}

func (m *demoMaker) init() {
	m.scripts, m.odd, m.levels = scripts(), oddNames(), demoLevels()
	m.attributes, m.streets, m.notes = demoAttributes(), demoStreets(), demoNotes()
}

// user makes the same user for the same id, always.
func (m *demoMaker) user(id int64) (u users.User, address string) {
	d := dice(id)
	created := time.Unix(demoYearStart, 0).UTC().Add(d.duration(demoYear))
	u = users.User{
		ID:        id,
		Name:      m.name(&d),
		Email:     fmt.Sprintf("user%d@example.com", id),
		Phone:     d.phone(),
		Avatar:    fmt.Sprintf("https://img.example.com/avatars/%d.webp", id),
		Status:    users.StatusActive,
		CityID:    1 + int64(d.n(demoCities)),
		CreatedAt: created,
		UpdatedAt: created,
	}
	left := time.Unix(demoYearStart, 0).Add(demoYear).Sub(created)
	if d.n(20) > 0 {
		u.LastLoginAt = created.Add(d.duration(left))
		if d.n(10) == 0 { // a whole second: written without a fraction
			u.LastLoginAt = u.LastLoginAt.Truncate(time.Second).Add(time.Second)
		}
	}
	if d.n(3) == 0 {
		u.UpdatedAt = created.Add(d.duration(left))
	}
	if d.n(10) == 0 {
		u.Status = []int{0, 2, 3}[d.n(3)]
	}
	if d.n(3) > 0 {
		level := d.n(len(m.levels))
		u.Member = &users.Member{Level: m.levels[level], Points: int64((level+1)*d.n(2000) + d.n(100))}
	}
	u.Attributes = m.attributesOf(&d)
	return u, m.address(&d)
}

func (m *demoMaker) name(d *dice) string {
	s := m.scripts[d.n(len(m.scripts))]
	first, last := s.given[d.n(len(s.given))], s.family[d.n(len(s.family))]
	if s.familyFirst {
		first, last = last, first
	}
	if d.n(25) == 0 {
		return fmt.Sprintf(m.odd[d.n(len(m.odd))], first, last)
	}
	return first + s.separator + last
}

func (m *demoMaker) attributesOf(d *dice) []users.Attribute {
	var attrs []users.Attribute
	for _, a := range m.attributes {
		if d.n(3) == 0 {
			attrs = append(attrs, users.Attribute{Key: a.key, Value: a.values[d.n(len(a.values))]})
		}
	}
	slices.SortFunc(attrs, func(a, b users.Attribute) int { return cmp.Compare(a.Key, b.Key) })
	return attrs
}

// address has 200 bytes to 4 KiB: mostly short, a few long.
func (m *demoMaker) address(d *dice) string {
	size := 200 + d.n(300)
	if d.n(16) == 0 {
		size = 500 + d.n(4<<10-600)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s\n%05d Example City %d\n", 1+d.n(300), m.streets[d.n(len(m.streets))], d.n(100000), 1+d.n(demoCities))
	for b.Len() < size {
		b.WriteString(m.notes[d.n(len(m.notes))])
	}
	return b.String()
}

// dice is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). Written out here, because the
// same seed must give the same users under every version of Go.
type dice uint64

func (d *dice) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// n returns a number from 0 to limit-1. The bias of the remainder does not matter here.
func (d *dice) n(limit int) int { return int(d.next() % uint64(limit)) }

// duration returns up to limit, in whole microseconds.
func (d *dice) duration(limit time.Duration) time.Duration {
	return time.Duration(d.next()%uint64(limit.Microseconds()+1)) * time.Microsecond
}

// phone returns a number from ranges that are set aside for fiction: 555-0100 to -0199
// in North America, and Ofcom's 07700 900000 to 900999.
func (d *dice) phone() string {
	if d.n(2) == 0 {
		return fmt.Sprintf("+1-202-555-%04d", 100+d.n(100))
	}
	return fmt.Sprintf("+44 7700 900%03d", d.n(1000))
}
