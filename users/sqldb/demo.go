package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"iter"
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
	insertDemoUsers = `INSERT INTO users
(id, name, email, phone, avatar, status, city_id, last_login_at, created_at, updated_at) VALUES `
	insertMembers   = `INSERT INTO members (user_id, level, points) VALUES `
	insertAddresses = `INSERT INTO addresses (user_id, address) VALUES `

	// A row of the migrations that never gets a time is a Fill that was begun.
	beginFill = 0
	endFill   = `DELETE FROM schema_migrations WHERE version = ?`
)

// Fill puts n made-up users with the ids 1 to n into an empty database. Their data is
// the same at every call, and that of one user does not depend on n. It reports whether
// it filled: a database that holds users, or ever did, is left as it is. All users
// appear at once, at the end, or none when Fill fails or ctx ends. Of several instances
// that call it at the same time one fills, and the others wait for it.
//
// progress, if not nil, is called now and then on the caller's goroutine.
func (db *DB) Fill(ctx context.Context, n int, progress func(done, total int)) (filled bool, err error) {
	if n <= 0 {
		return false, nil
	}
	err = db.alone(ctx, func(ctx context.Context, conn *sql.Conn) error {
		if db.dialect.reserve != nil {
			if err := db.reserve(ctx, conn, n); err != nil {
				return err
			}
		}
		err := db.runTx(ctx, conn, func(t *tx) error {
			var used bool
			if err := t.queryRow(ctx, db.dialect.everUsed).Scan(&used); err != nil || used {
				return err
			}
			filled = true
			if err := db.fill(ctx, t, n, progress); err != nil {
				return err
			}
			_, err := t.exec(ctx, endFill, beginFill)
			return err
		})
		if err == nil && filled && db.dialect.analyze != "" {
			_, _ = conn.ExecContext(ctx, db.dialect.analyze) // the users are there without it
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("fill database with %d users: %w", n, cause(ctx, err))
	}
	return filled, nil
}

// Used reports whether the database holds users, or ever did: whether Fill would leave it
// as it is.
func (db *DB) Used(ctx context.Context) (used bool, err error) {
	if err := db.read.QueryRowContext(ctx, db.dialect.everUsed).Scan(&used); err != nil {
		return false, fmt.Errorf("look for users: %w", cause(ctx, err))
	}
	return used, nil
}

// reserve sets the ids 1 to n aside in a database that was never used, so that nobody is
// given one meanwhile. To a server they are used from then on, even if the users never
// come, so it is first written down why.
func (db *DB) reserve(ctx context.Context, conn *sql.Conn, n int) error {
	if err := db.dialect.lock(ctx, conn); err != nil {
		return err
	}
	t := tx{conn: conn, dialect: db.dialect}
	var used, begun bool
	if err := t.queryRow(ctx, db.dialect.everUsed).Scan(&used); err != nil || used {
		return err
	}
	if err := t.queryRow(ctx, "SELECT EXISTS (SELECT 1 FROM schema_migrations WHERE version = ?)", beginFill).Scan(&begun); err != nil {
		return err
	}
	if !begun {
		if _, err := t.exec(ctx, insertMigration, beginFill, "fill", 0); err != nil {
			return err
		}
	}
	_, err := conn.ExecContext(ctx, db.dialect.reserve(n))
	return err
}

// fillRows is the most rows of one INSERT, and fillUsers the most users between two of
// them. SQLite takes 32,766 parameters, Postgres 65,535.
const (
	fillRows  = 500
	fillUsers = 500
)

// rowsOf gathers the rows of a table into long INSERTs.
type rowsOf struct {
	head    string
	columns int
	args    []any
}

func (r *rowsOf) add(args ...any) { r.args = append(r.args, args...) }

func (r *rowsOf) flush(ctx context.Context, t *tx) error {
	for args := range slices.Chunk(r.args, fillRows*r.columns) {
		if _, err := t.exec(ctx, r.head+tuples(len(args)/r.columns, r.columns), args...); err != nil {
			return err
		}
	}
	r.args = r.args[:0]
	return nil
}

func (db *DB) fill(ctx context.Context, t *tx, n int, progress func(done, total int)) error {
	rows := rowsOf{head: insertDemoUsers, columns: 10}
	attributes := rowsOf{head: insertAttributes, columns: 3}
	members := rowsOf{head: insertMembers, columns: 3}
	addresses := rowsOf{head: insertAddresses, columns: 2}
	for u, home := range DemoUsers(n) {
		login := sql.NullInt64{Int64: u.LastLoginAt.UnixMicro(), Valid: !u.LastLoginAt.IsZero()}
		rows.add(u.ID, u.Name, u.Email, u.Phone, u.Avatar, u.Status, u.CityID,
			login, u.CreatedAt.UnixMicro(), u.UpdatedAt.UnixMicro())
		if !db.leave {
			for _, a := range u.Attributes {
				attributes.add(u.ID, a.Key, a.Value)
			}
		}
		if u.Member != nil {
			members.add(u.ID, u.Member.Level, u.Member.Points)
		}
		addresses.add(u.ID, home)
		if u.ID%fillUsers != 0 && u.ID != int64(n) {
			continue
		}
		for _, r := range []*rowsOf{&rows, &attributes, &members, &addresses} {
			if err := r.flush(ctx, t); err != nil {
				return err
			}
		}
		if progress != nil && (u.ID%demoProgress == 0 || u.ID == int64(n)) {
			progress(int(u.ID), n)
		}
	}
	return nil
}

// DemoUsers yields the users that Fill stores, with their addresses. A caller that keeps
// attributes elsewhere finds them here.
func DemoUsers(n int) iter.Seq2[users.User, string] {
	return func(yield func(users.User, string) bool) {
		var m demoMaker
		m.init()
		for id := int64(1); id <= int64(n); id++ {
			if !yield(m.user(id)) {
				return
			}
		}
	}
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
