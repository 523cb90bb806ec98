package sqldb

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pinion/users"
)

// dump hashes all rows of all tables.
func dump(t *testing.T, db *DB) string {
	t.Helper()
	h := sha256.New()
	for _, text := range []string{
		"SELECT id, name, email, phone, avatar, status, city_id, coalesce(last_login_at, -1), created_at, updated_at FROM users ORDER BY id",
		"SELECT user_id, address FROM addresses ORDER BY user_id",
		`SELECT user_id, "key", value FROM user_attributes ORDER BY user_id, "key"`,
		"SELECT user_id, level, points FROM members ORDER BY user_id",
	} {
		rows, err := db.read.Query(text)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		values := make([]string, len(columns))
		dest := make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		for rows.Next() {
			if err := rows.Scan(dest...); err != nil {
				t.Fatal(err)
			}
			h.Write(fmt.Appendf(nil, "%q\n", values))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func TestFill(t *testing.T) {
	onAll(t, Options{}, func(t *testing.T, db *DB) {
		ctx := context.Background()
		var steps []int
		filled, err := db.Fill(ctx, 1200, func(done, total int) {
			if total != 1200 {
				t.Errorf("total %d", total)
			}
			steps = append(steps, done)
		})
		if err != nil || !filled {
			t.Fatal(filled, err)
		}
		if fmt.Sprint(steps) != "[1000 1200]" {
			t.Errorf("progress %v", steps)
		}
		// The rows are what golden answers elsewhere rest on: a change here changes those.
		const want = "f89e6d3a43a5afbc9916e404de177d645fdbd77354ce0489cea1da9e07f7f1d5"
		before := dump(t, db)
		if before != want {
			t.Errorf("rows hash to %s, want %s", before, want)
		}
		if filled, err := db.Fill(ctx, 10, nil); filled || err != nil {
			t.Errorf("second Fill = %v, %v; want false", filled, err)
		}
		if after := dump(t, db); after != before {
			t.Error("the second Fill changed rows")
		}
		if id := mustCreate(t, db, users.NewUser{Name: "x"}); id != 1201 {
			t.Errorf("next id is %d, want 1201", id)
		}
	})
}

// A database that had users once has given their ids away.
func TestFillEverUsed(t *testing.T) {
	onAll(t, Options{}, func(t *testing.T, db *DB) {
		ctx := context.Background()
		if used, err := db.Used(ctx); used || err != nil {
			t.Errorf("Used = %v, %v of an empty database", used, err)
		}
		if err := db.Delete(ctx, mustCreate(t, db, users.NewUser{Name: "x"})); err != nil {
			t.Fatal(err)
		}
		if used, err := db.Used(ctx); !used || err != nil {
			t.Errorf("Used = %v, %v of one that had a user", used, err)
		}
		if filled, err := db.Fill(ctx, 10, nil); filled || err != nil {
			t.Errorf("Fill = %v, %v; want false", filled, err)
		}
	})
}

func TestFillInterrupted(t *testing.T) {
	onAll(t, Options{}, func(t *testing.T, db *DB) {
		ctx, cancel := context.WithCancel(context.Background())
		filled, err := db.Fill(ctx, 1500, func(done, _ int) {
			if done == 1000 {
				cancel()
			}
		})
		if filled || !errors.Is(err, context.Canceled) {
			t.Fatalf("Fill = %v, %v; want context.Canceled", filled, err)
		}
		if got, err := db.Users(context.Background(), []int64{1, 1000}); err != nil || len(got) != 0 {
			t.Errorf("left behind: %v, %v", got, err)
		}
		if filled, err := db.Fill(context.Background(), 2, nil); !filled || err != nil {
			t.Errorf("Fill after an interrupted one = %v, %v; want true", filled, err)
		}
	})
}

// What the made-up people must be like.
func TestDemoUsers(t *testing.T) {
	const n = 5000
	var m demoMaker
	m.init()
	seen := map[string]int{}
	members, statusActive := 0, 0
	for id := int64(1); id <= n; id++ {
		u, address := m.user(id)
		again, _ := m.user(id)
		if fmt.Sprint(u) == "" || u.Name != again.Name || !u.UpdatedAt.Equal(again.UpdatedAt) {
			t.Fatalf("user %d differs from itself", id)
		}
		in := users.NewUser{
			Name: u.Name, Email: u.Email, Phone: u.Phone, Avatar: u.Avatar, Status: u.Status,
			CityID: u.CityID, Address: address, Attributes: u.Attributes,
		}
		if err := in.Validate(); err != nil {
			t.Errorf("user %d could not be created by a client: %v", id, err)
		}
		if strings.Contains(fmt.Sprint(in), "\x00") {
			t.Errorf("user %d holds a NUL, which Postgres cannot store", id)
		}
		if !strings.HasSuffix(u.Email, "@example.com") || u.CityID < 1 || u.CityID > demoCities {
			t.Errorf("user %d: %+v", id, u)
		}
		if len(address) < 200 || len(address) > 4<<10 {
			t.Errorf("user %d: address of %d bytes", id, len(address))
		}
		if u.CreatedAt.Year() != 2025 || u.UpdatedAt.Before(u.CreatedAt) || !u.LastLoginAt.IsZero() && u.LastLoginAt.Before(u.CreatedAt) {
			t.Errorf("user %d: times %v, %v, %v", id, u.CreatedAt, u.UpdatedAt, u.LastLoginAt)
		}
		if u.LastLoginAt.IsZero() {
			seen["never logged in"]++
		}
		if u.Member != nil {
			members++
			seen[u.Member.Level]++
		}
		if u.Status == users.StatusActive {
			statusActive++
		}
		classify(u.Name, seen)
	}
	for _, want := range []string{
		"Latin", "Cyrillic", "Greek", "Arabic", "Hebrew", "Devanagari", "Han", "Hiragana", "Hangul", "Thai",
		"quote", "backslash", "control", "beyond the basic plane", "never logged in",
		"bronze", "silver", "gold", "platinum",
	} {
		if seen[want] == 0 {
			t.Errorf("nobody among %d with: %s", n, want)
		}
	}
	if members < n*60/100 || members > n*73/100 {
		t.Errorf("%d of %d are members, want about two thirds", members, n)
	}
	if statusActive < n*80/100 {
		t.Errorf("%d of %d are active", statusActive, n)
	}
}

func classify(name string, seen map[string]int) {
	for _, s := range []string{"Latin", "Cyrillic", "Greek", "Arabic", "Hebrew", "Devanagari", "Han", "Hiragana", "Hangul", "Thai"} {
		if strings.ContainsFunc(name, func(r rune) bool { return unicode.Is(unicode.Scripts[s], r) }) {
			seen[s]++
		}
	}
	for what, chars := range map[string]string{"quote": `"`, "backslash": `\`} {
		if strings.Contains(name, chars) {
			seen[what]++
		}
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			seen["control"]++
		}
		if utf8.RuneLen(r) == 4 {
			seen["beyond the basic plane"]++
		}
	}
}
