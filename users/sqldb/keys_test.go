package sqldb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pinion/users"
)

func keyed(key string) users.NewUser {
	return users.NewUser{
		Name: "Ada", Email: "ada@example.com", Address: "1 Main Street", Key: key,
		Attributes: []users.Attribute{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}},
	}
}

func countRows(t testing.TB, db *DB, table string) (n int) {
	t.Helper()
	if err := db.read.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestKey(t *testing.T) {
	onAll(t, Options{}, func(t *testing.T, db *DB) {
		ctx := context.Background()
		id := mustCreate(t, db, keyed("k"))
		again := keyed("k")
		slices.Reverse(again.Attributes) // an object has no order
		if got := mustCreate(t, db, again); got != id {
			t.Errorf("the same create again made %d, first %d", got, id)
		}
		other := mustCreate(t, db, keyed("K"))
		if other == id {
			t.Error("two keys, one user")
		}
		if a, b := mustCreate(t, db, keyed("")), mustCreate(t, db, keyed("")); a == b {
			t.Error("two creates without a key, one user")
		}
		changed := keyed("k")
		changed.Address += "!"
		if got, err := db.Create(ctx, changed); !errors.Is(err, users.ErrKeyReused) || got != 0 {
			t.Errorf("other content: %d, %v", got, err)
		}
		if n := countRows(t, db, "users"); n != 4 {
			t.Errorf("%d users, want 4", n)
		}
		// The user may be gone; its key is not.
		if err := db.Delete(ctx, id); err != nil {
			t.Fatal(err)
		}
		if got := mustCreate(t, db, keyed("k")); got != id {
			t.Errorf("the same create after a delete made %d, first %d", got, id)
		}
	})
}

// Every field counts, and none runs into the next.
func TestContentDigest(t *testing.T) {
	base := func() users.NewUser {
		return users.NewUser{
			Name: "n", Email: "e", Phone: "p", Avatar: "a", Status: 1, CityID: 2, Address: "d",
			Attributes: []users.Attribute{{Key: "k", Value: "v"}, {Key: "l", Value: "w"}},
		}
	}
	seen := map[string]string{}
	for name, change := range map[string]func(*users.NewUser){
		"nothing":    func(*users.NewUser) {},
		"name":       func(u *users.NewUser) { u.Name = "ne"; u.Email = "" },
		"email":      func(u *users.NewUser) { u.Email = "x" },
		"phone":      func(u *users.NewUser) { u.Phone = "" },
		"avatar":     func(u *users.NewUser) { u.Phone = "pa"; u.Avatar = "" },
		"status":     func(u *users.NewUser) { u.Status = 2 },
		"city":       func(u *users.NewUser) { u.CityID = 3 },
		"address":    func(u *users.NewUser) { u.Address = "dk"; u.Attributes[0].Key = "" },
		"key":        func(u *users.NewUser) { u.Attributes[0].Key = "kv"; u.Attributes[0].Value = "" },
		"value":      func(u *users.NewUser) { u.Attributes[1].Value = "x" },
		"attributes": func(u *users.NewUser) { u.Attributes = nil },
	} {
		u := base()
		change(&u)
		digest := fmt.Sprintf("%x", contentDigest(&u))
		if as := seen[digest]; as != "" {
			t.Errorf("%s is the same as %s", name, as)
		}
		seen[digest] = name
	}
	u, v := base(), base()
	v.Key = "x"
	slices.Reverse(v.Attributes)
	if !slices.Equal(contentDigest(&u), contentDigest(&v)) {
		t.Error("the key or the order of attributes counts")
	}
	if u.Attributes[0].Key != "k" {
		t.Error("the caller's attributes were sorted")
	}
}

// Retries that meet make one user, whoever comes first.
func TestKeyAtOnce(t *testing.T) {
	onAll(t, Options{}, func(t *testing.T, db *DB) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		for round := range 5 {
			var wg sync.WaitGroup
			ids := make([]int64, 8)
			for i := range ids {
				wg.Go(func() {
					id, err := db.Create(ctx, keyed(fmt.Sprint(round)))
					if err != nil {
						t.Error(err)
					}
					ids[i] = id
				})
			}
			wg.Wait()
			if slices.Sort(ids); ids[0] != ids[len(ids)-1] {
				t.Fatalf("one key made %v", ids)
			}
		}
		if n := countRows(t, db, "users"); n != 5 {
			t.Errorf("%d users, want 5", n)
		}
	})
}

// A create that fails does not use its key up.
func TestKeyOfFailure(t *testing.T) {
	onAll(t, Options{}, func(t *testing.T, db *DB) {
		bad := keyed("k")
		bad.Attributes = []users.Attribute{{Key: "x"}, {Key: "x"}}
		if id, err := db.Create(context.Background(), bad); err == nil {
			t.Fatalf("created %d with a key twice", id)
		}
		if n := countRows(t, db, "idempotency_keys"); n != 0 {
			t.Errorf("%d keys left behind", n)
		}
		mustUser(t, db, mustCreate(t, db, keyed("k")))
	})
}

// After a day a key is as new, and some time later its row goes.
func TestKeyExpires(t *testing.T) {
	var offset atomic.Int64
	now := func() time.Time { return instant().Add(time.Duration(offset.Load())) }
	// wait lets time pass.
	wait := func(d time.Duration) { offset.Add(int64(d)) }
	onAll(t, Options{Now: now}, func(t *testing.T, db *DB) {
		first := mustCreate(t, db, keyed("k"))
		wait(keyLifetime - time.Second)
		if got := mustCreate(t, db, keyed("k")); got != first {
			t.Errorf("within a day: %d, want %d", got, first)
		}
		wait(2 * time.Second)
		changed := keyed("k")
		changed.Name = "Bob"
		second := mustCreate(t, db, changed)
		if second == first {
			t.Error("after a day: the old user")
		}
		if got := mustCreate(t, db, changed); got != second {
			t.Errorf("the key was not taken anew: %d, want %d", got, second)
		}

		mustCreate(t, db, keyed("l"))
		wait(keyLifetime + keyGrace + time.Second)
		db.oldKeys.running.Wait() // or the next would not start
		mustCreate(t, db, keyed("m"))
		db.oldKeys.running.Wait()
		if n := countRows(t, db, "idempotency_keys"); n != 1 {
			t.Errorf("%d keys, want only the last", n)
		}
	})
}

// An expired key that two creates meet at makes one user.
func TestExpiredKeyAtOnce(t *testing.T) {
	var days atomic.Int64
	now := func() time.Time { return instant().Add(time.Duration(days.Load()) * (keyLifetime + time.Minute)) }
	onAll(t, Options{Now: now}, func(t *testing.T, db *DB) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		for range 4 {
			days.Add(1)
			var wg sync.WaitGroup
			ids := make([]int64, 6)
			for i := range ids {
				wg.Go(func() {
					var err error
					if ids[i], err = db.Create(ctx, keyed("k")); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if slices.Sort(ids); ids[0] != ids[len(ids)-1] {
				t.Fatalf("one key made %v", ids)
			}
		}
		if n := countRows(t, db, "users"); n != 4 {
			t.Errorf("%d users, want 4", n)
		}
	})
}
