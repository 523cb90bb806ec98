package sqldb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pinion/users"
)

// instant is a clock that stands still, on a time that microseconds cannot hold.
func instant() time.Time { return time.Date(2026, 1, 2, 15, 4, 5, 123456789, time.UTC) }

func mustCreate(t testing.TB, db *DB, u users.NewUser) int64 {
	t.Helper()
	id, err := db.Create(context.Background(), u)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func mustUser(t testing.TB, db *DB, id int64) users.User {
	t.Helper()
	found, err := db.Users(context.Background(), []int64{id})
	if err != nil || len(found) != 1 {
		t.Fatalf("user %d: %v, %v", id, found, err)
	}
	return found[0]
}

func ptr[T any](v T) *T { return &v }

func TestCreate(t *testing.T) {
	onAll(t, Options{Now: instant}, func(t *testing.T, db *DB) {
		ctx := context.Background()
		nasty := nastyText(db)
		in := users.NewUser{
			Name: "n" + nasty, Email: "e" + nasty, Phone: "p" + nasty, Avatar: "a" + nasty,
			Status: users.MaxStatus, CityID: 1<<63 - 1, Address: nasty + strings.Repeat("x", users.MaxAddress),
			Attributes: []users.Attribute{{Key: "z" + nasty, Value: nasty}, {Key: "a", Value: ""}},
		}
		id := mustCreate(t, db, in)
		got := mustUser(t, db, id)
		want := users.User{
			ID: id, Name: in.Name, Email: in.Email, Phone: in.Phone, Avatar: in.Avatar, Status: in.Status,
			CityID: in.CityID, CreatedAt: instant().Truncate(time.Microsecond), UpdatedAt: instant().Truncate(time.Microsecond),
		}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("\n got %+v\nwant %+v", got, want)
		}
		attributes, err := db.Attributes(ctx, []int64{id})
		if err != nil || !slices.Equal(sorted(attributes[id]), sorted(in.Attributes)) {
			t.Errorf("attributes %v, %v", attributes, err)
		}
		if address, err := db.Address(ctx, id); err != nil || address != in.Address {
			t.Errorf("address of %d bytes, %v", len(address), err)
		}
		if members, err := db.Members(ctx, []int64{id}); err != nil || len(members) != 0 {
			t.Errorf("members %v, %v", members, err)
		}

		bare := mustCreate(t, db, users.NewUser{Name: "Ada", Email: "ada@example.com"})
		if bare <= id {
			t.Errorf("id %d after %d", bare, id)
		}
		if address, err := db.Address(ctx, bare); err != nil || address != "" {
			t.Errorf("address %q, %v; want none", address, err)
		}
	})
}

// nastyText is text that any query may get wrong, as far as the database can hold it.
func nastyText(db *DB) string {
	text := "\x01 \x1f \" \\ \\' ' '' ? $1 % é e\u0301 É 👩‍🚀 \u2028 \ufeff "
	switch db.dialect.name {
	case "sqlite":
		text += "\x00 \xff "
	case "mysql":
		text += "\x00 \x1a "
	}
	return text
}

func sorted(attrs []users.Attribute) []users.Attribute {
	attrs = slices.Clone(attrs)
	slices.SortFunc(attrs, func(a, b users.Attribute) int { return strings.Compare(a.Key, b.Key) })
	return attrs
}

// All of a user is stored, or nothing.
func TestCreateIsWhole(t *testing.T) {
	onAll(t, Options{}, func(t *testing.T, db *DB) {
		twice := users.NewUser{
			Name: "Ada", Email: "ada@example.com",
			Attributes: []users.Attribute{{Key: "k", Value: "1"}, {Key: "k", Value: "2"}},
		}
		if id, err := db.Create(context.Background(), twice); err == nil {
			t.Errorf("created %d with a key twice", id)
		}
		var n int
		if err := db.read.QueryRow("SELECT count(*) FROM users").Scan(&n); err != nil || n != 0 {
			t.Errorf("%d users left behind, %v", n, err)
		}
	})
}

func TestUpdate(t *testing.T) {
	onAll(t, Options{Now: instant}, func(t *testing.T, db *DB) {
		ctx := context.Background()
		id := mustCreate(t, db, users.NewUser{
			Name: "Ada", Email: "ada@example.com", Phone: "1", Avatar: "2", Status: 1, CityID: 4, Address: "5",
			Attributes: []users.Attribute{{Key: "k", Value: "v"}},
		})
		other := mustCreate(t, db, users.NewUser{Name: "Bob", Email: "bob@example.com", Address: "here"})
		before := mustUser(t, db, other)
		login := time.Date(2026, 3, 4, 5, 6, 7, 8000, time.FixedZone("", 3600))
		want := mustUser(t, db, id)
		for _, step := range []struct {
			name   string
			patch  users.Patch
			expect func()
		}{
			{"name", users.Patch{Name: ptr("Zoë")}, func() { want.Name = "Zoë" }},
			{"email", users.Patch{Email: ptr("z@example.com")}, func() { want.Email = "z@example.com" }},
			{"phone", users.Patch{Phone: ptr("")}, func() { want.Phone = "" }},
			{"avatar", users.Patch{Avatar: ptr("x")}, func() { want.Avatar = "x" }},
			{"status", users.Patch{Status: ptr(0)}, func() { want.Status = 0 }},
			{"city", users.Patch{CityID: ptr(int64(9))}, func() { want.CityID = 9 }},
			{"login", users.Patch{LastLoginAt: &login}, func() { want.LastLoginAt = login.UTC() }},
			{"no login", users.Patch{LastLoginAt: &time.Time{}}, func() { want.LastLoginAt = time.Time{} }},
			{"address", users.Patch{Address: ptr("there")}, func() {}},
			{"two", users.Patch{Name: ptr("Y"), CityID: ptr(int64(1))}, func() { want.Name, want.CityID = "Y", 1 }},
		} {
			if err := db.Update(ctx, id, step.patch); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			step.expect()
			// The clock stands still; the time of the update does not.
			want.UpdatedAt = want.UpdatedAt.Add(time.Microsecond)
			if got := mustUser(t, db, id); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s:\n got %+v\nwant %+v", step.name, got, want)
			}
		}
		if address, err := db.Address(ctx, id); err != nil || address != "there" {
			t.Errorf("address %q, %v", address, err)
		}
		for _, attrs := range [][]users.Attribute{{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}, {{Key: "b", Value: "3"}}, {}} {
			if err := db.Update(ctx, id, users.Patch{Attributes: &attrs}); err != nil {
				t.Fatal(err)
			}
			if got, err := db.Attributes(ctx, []int64{id}); err != nil || !slices.Equal(got[id], attrs) {
				t.Errorf("attributes %v, %v; want %v", got, err, attrs)
			}
		}
		if got := mustUser(t, db, other); fmt.Sprint(got) != fmt.Sprint(before) {
			t.Errorf("another user changed: %+v", got)
		}
		if address, err := db.Address(ctx, other); err != nil || address != "here" {
			t.Errorf("another user's address changed: %q, %v", address, err)
		}
	})
}

func TestDelete(t *testing.T) {
	onAll(t, Options{}, func(t *testing.T, db *DB) {
		ctx := context.Background()
		id := mustCreate(t, db, users.NewUser{
			Name: "Ada", Email: "ada@example.com", Address: "x", Attributes: []users.Attribute{{Key: "k", Value: "v"}},
		})
		if _, err := db.write.Exec(db.dialect.bind(insertMembers+"(?, ?, ?)"), id, "gold", 1); err != nil {
			t.Fatal(err)
		}
		if err := db.Delete(ctx, id); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"users", "addresses", "user_attributes", "members"} {
			var n int
			if err := db.read.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil || n != 0 {
				t.Errorf("%d rows left in %s, %v", n, table, err)
			}
		}
		// The newest id was deleted: the next one is another.
		if next := mustCreate(t, db, users.NewUser{Name: "Bob", Email: "bob@example.com"}); next <= id {
			t.Errorf("id %d was given out after %d was deleted", next, id)
		}
	})
}

func TestNotFound(t *testing.T) {
	onAll(t, Options{}, func(t *testing.T, db *DB) {
		ctx := context.Background()
		_, err := db.Address(ctx, 7)
		for name, err := range map[string]error{
			"Address": err,
			"Update":  db.Update(ctx, 7, users.Patch{Name: ptr("x"), Address: ptr("y"), Attributes: &[]users.Attribute{{Key: "k"}}}),
			"Delete":  db.Delete(ctx, 7),
		} {
			if !errors.Is(err, users.ErrNotFound) {
				t.Errorf("%s = %v, want ErrNotFound", name, err)
			}
		}
		if got, err := db.Users(ctx, []int64{7, -1, 0, 1<<63 - 1}); err != nil || len(got) != 0 {
			t.Errorf("Users = %v, %v; want none", got, err)
		}
	})
}

// Lists of all lengths around the prepared ones, and longer than the longest.
func TestListLengths(t *testing.T) {
	onAll(t, Options{}, func(t *testing.T, db *DB) {
		ctx := context.Background()
		const stored = 300
		if _, err := db.Fill(ctx, stored, nil); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 1, 2, 3, 4, 5, 20, 255, 256, 257, 1000, 1023, 1024, 1025, 2049} {
			ids := make([]int64, n)
			want := 0
			for i := range ids {
				ids[i] = int64(2*i + 1) // every other one, also some that are not there
				if ids[i] <= stored {
					want++
				}
			}
			got, err := db.Users(ctx, ids)
			if err != nil || len(got) != want {
				t.Errorf("%d ids: %d users, %v; want %d", n, len(got), err, want)
			}
			if n == 0 {
				continue
			}
			slices.SortFunc(got, func(a, b users.User) int { return int(a.ID - b.ID) })
			for i, u := range got {
				if u.ID != ids[i] {
					t.Fatalf("%d ids: got id %d, want %d", n, u.ID, ids[i])
				}
			}
		}
	})
}

func TestContextEnds(t *testing.T) {
	onAll(t, Options{}, func(t *testing.T, db *DB) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, usersErr := db.Users(ctx, []int64{1})
		_, activeErr := db.ActiveIDs(ctx, users.ActiveQuery{Limit: 1})
		_, createErr := db.Create(ctx, users.NewUser{Name: "x"})
		for name, err := range map[string]error{
			"Users": usersErr, "ActiveIDs": activeErr, "Create": createErr, "Ping": db.Ping(ctx),
		} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s = %v, want context.Canceled", name, err)
			}
		}
		// The connections are still good.
		mustUser(t, db, mustCreate(t, db, users.NewUser{Name: "x"}))
		if err := db.Ping(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// A statement that is cut off while it runs leaves the in-memory database whole, even if
// its connection is replaced.
func TestMemoryOutlivesConnection(t *testing.T) {
	db := openTest(t, Options{DSN: scheme + memoryName})
	id := mustCreate(t, db, users.NewUser{Name: "x"})
	db.write.SetMaxIdleConns(0) // closes the idle connection
	mustUser(t, db, id)
	mustUser(t, db, id)

	other := openTest(t, Options{DSN: scheme + memoryName})
	if got, err := other.Users(context.Background(), []int64{id}); err != nil || len(got) != 0 {
		t.Errorf("two in-memory databases are one: %v, %v", got, err)
	}
}
