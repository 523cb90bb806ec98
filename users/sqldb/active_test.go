package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pinion/users"
)

// plan returns SQLite's plan of a query, one step a line.
func plan(t *testing.T, db *DB, text string, args ...any) []string {
	t.Helper()
	rows, err := db.read.Query("EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // Err says whether the rows were read
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return steps
}

// citiesArgs are the parameters of activeInCities.
func citiesArgs(n int) (args []any) {
	for i := range n {
		args = append(args, i, 0, 50)
	}
	return append(args, 50)
}

func TestActivePlan(t *testing.T) {
	db := openTest(t, Options{DSN: fileDSN(t)})
	// With statistics the planner may think differently.
	if _, err := db.Fill(context.Background(), 300, nil); err != nil {
		t.Fatal(err)
	}
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			if _, err := db.write.Exec("ANALYZE"); err != nil {
				t.Fatal(err)
			}
		}
		all := plan(t, db, selectActive, 0, 50)
		if want := []string{"SEARCH users USING COVERING INDEX users_active (status=? AND last_login_at>?)"}; !slices.Equal(all, want) {
			t.Errorf("all cities: %q, want %q", all, want)
		}
		city := plan(t, db, selectActiveInCity, 1, 0, 50)
		part := "SEARCH users USING COVERING INDEX users_active_by_city (status=? AND city_id=? AND last_login_at>?)"
		if want := []string{part}; !slices.Equal(city, want) {
			t.Errorf("one city: %q, want %q", city, want)
		}

		const n = 4
		steps := plan(t, db, activeInCities(n), citiesArgs(n)...)
		searches, sorts := 0, 0
		for _, step := range steps {
			switch {
			case step == part:
				searches++
			case strings.HasPrefix(step, "USE TEMP B-TREE FOR ORDER BY"):
				sorts++ // at most one, of the merged parts, each cut by its limit
			case strings.HasPrefix(step, "SCAN users"), strings.HasPrefix(step, "SEARCH users"):
				t.Errorf("cities: unexpected step %q", step)
			}
		}
		if searches != n || sorts > 1 {
			t.Errorf("cities: %d searches and %d sorts, want %d and at most 1:\n%s", searches, sorts, n, strings.Join(steps, "\n"))
		}
	}
}

// No query of the read path scans a table or touches the addresses.
func TestListPlans(t *testing.T) {
	db := openTest(t, Options{DSN: fileDSN(t)})
	for _, q := range []*listQuery{db.rows, db.attributes, db.members} {
		for _, n := range []int{1, 16} {
			args := make([]any, n)
			for i := range args {
				args[i] = i
			}
			for _, step := range plan(t, db, q.text(n), args...) {
				if strings.HasPrefix(step, "SCAN") || strings.Contains(step, "addresses") || strings.Contains(step, "TEMP B-TREE") {
					t.Errorf("%s: %s", q.text(n), step)
				}
			}
		}
	}
}

// ActiveIDs against a plain filter and sort in Go.
func TestActiveIDs(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	onAll(t, Options{}, func(t *testing.T, db *DB) {
		ctx := context.Background()
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var all []users.User
		rows := rowsOf{head: insertDemoUsers, columns: 10}
		for range 150 {
			u := users.User{
				Status: rng.IntN(3), CityID: rng.Int64N(90),
				LastLoginAt: start.Add(time.Duration(rng.IntN(100)) * time.Second), // many ties
			}
			if rng.IntN(5) == 0 {
				u.LastLoginAt = time.Time{}
			}
			u.ID = int64(len(all) + 1)
			login := sql.NullInt64{Int64: u.LastLoginAt.UnixMicro(), Valid: !u.LastLoginAt.IsZero()}
			rows.add(u.ID, "x", "x@example.com", "", "", u.Status, u.CityID, login, 0, 0)
			all = append(all, u)
		}
		if err := db.inTx(ctx, func(tx *tx) error { return rows.flush(ctx, tx) }); err != nil {
			t.Fatal(err)
		}
		for range 15 {
			q := users.ActiveQuery{Limit: rng.IntN(60)}
			for range rng.IntN(3) * rng.IntN(50) { // sometimes more than one statement takes
				q.Cities = append(q.Cities, rng.Int64N(100)-2)
			}
			if rng.IntN(2) == 0 {
				q.Since = start.Add(time.Duration(rng.IntN(110)) * time.Second)
			}
			got, err := db.ActiveIDs(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			if want := activeOf(all, q); !slices.Equal(got, want) {
				t.Fatalf("%+v:\n got %v\nwant %v", q, got, want)
			}
		}
	})
}

func activeOf(all []users.User, q users.ActiveQuery) (ids []int64) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b users.User) int {
		return cmp.Or(b.LastLoginAt.Compare(a.LastLoginAt), cmp.Compare(b.ID, a.ID))
	})
	for _, u := range all {
		if len(ids) == q.Limit {
			break
		}
		if u.Status == users.StatusActive && !u.LastLoginAt.IsZero() && !u.LastLoginAt.Before(q.Since) &&
			(len(q.Cities) == 0 || slices.Contains(q.Cities, u.CityID)) {
			ids = append(ids, u.ID)
		}
	}
	return ids
}

func TestNewestDropsRepeats(t *testing.T) {
	got := newest([]login{{1, 10}, {2, 30}, {3, 30}, {1, 40}, {4, 5}}, true, 3)
	if fmt.Sprint(got) != "[1 3 2]" {
		t.Errorf("got %v, want [1 3 2]", got)
	}
}
