package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pinion/users"
)

// Two instances that fill at once: one does, the other waits for it.
func TestFillAtOnce(t *testing.T) {
	for name, dsn := range map[string]func() string{
		"file":     func() string { return fileDSN(t) },
		"mariadb":  func() string { return servers.MariaDB(t).Database() },
		"postgres": func() string { return servers.Postgres(t).Database() },
	} {
		t.Run(name, func(t *testing.T) {
			dsn := dsn()
			a, b := openTest(t, Options{DSN: dsn}), openTest(t, Options{DSN: dsn, BusyTimeout: time.Minute})
			var wg sync.WaitGroup
			var fills atomic.Int64
			for _, db := range []*DB{a, b, a, b} {
				wg.Go(func() {
					filled, err := db.Fill(context.Background(), 1500, nil)
					if err != nil {
						t.Error(err)
					}
					if filled {
						fills.Add(1)
					}
					mustUser(t, db, 1500) // all are there when it returns
				})
			}
			wg.Wait()
			if fills.Load() != 1 {
				t.Errorf("%d filled, want 1", fills.Load())
			}
			if n := countRows(t, a, "users"); n != 1500 {
				t.Errorf("%d users", n)
			}
		})
	}
}

// Whoever creates users meanwhile gets other ids.
func TestCreateDuringFill(t *testing.T) {
	onServers(t, Options{}, func(t *testing.T, db *DB) {
		var ids []int64
		filled, err := db.Fill(context.Background(), 3000, func(int, int) {
			ids = append(ids, mustCreate(t, db, users.NewUser{Name: "x"}))
		})
		if err != nil || !filled {
			t.Fatal(filled, err)
		}
		if fmt.Sprint(ids) != "[3001 3002 3003]" {
			t.Errorf("made %v", ids)
		}
	})
}

// A Fill that is cut off between its steps leaves a database that can still be filled.
func TestFillAfterCrash(t *testing.T) {
	onServers(t, Options{}, func(t *testing.T, db *DB) {
		ctx := context.Background()
		err := db.alone(ctx, func(ctx context.Context, conn *sql.Conn) error { return db.reserve(ctx, conn, 100) })
		if err != nil {
			t.Fatal(err)
		}
		if filled, err := db.Fill(ctx, 20, nil); !filled || err != nil {
			t.Errorf("Fill = %v, %v", filled, err)
		}
		if id := mustCreate(t, db, users.NewUser{Name: "x"}); id != 21 {
			t.Errorf("next id is %d, want 21", id)
		}
	})
}
