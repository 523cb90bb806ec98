package sqldb

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"pinion/users"
)

// Readers and writers at once: nobody fails, and what a write has stored is there for the
// next read.
func TestConcurrency(t *testing.T) {
	onAll(t, Options{}, func(t *testing.T, db *DB) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		stop := time.Now().Add(500 * time.Millisecond)
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := 0; time.Now().Before(stop); i++ {
					if err := writeAndCheck(ctx, db, fmt.Sprint(w, " ", i)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for range 4 {
			wg.Go(func() {
				for time.Now().Before(stop) {
					if err := readAll(ctx, db); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

func writeAndCheck(ctx context.Context, db *DB, name string) error {
	id, err := db.Create(ctx, users.NewUser{Name: name, Email: "x@example.com", Address: name, Status: 1})
	if err != nil {
		return err
	}
	name += "!"
	now := time.Now()
	if err := db.Update(ctx, id, users.Patch{Name: &name, LastLoginAt: &now}); err != nil {
		return err
	}
	found, err := db.Users(ctx, []int64{id})
	if err != nil || len(found) != 1 || found[0].Name != name {
		return fmt.Errorf("read %v, %w after writing %q", found, err, name)
	}
	if id%4 != 0 {
		return nil
	}
	if err := db.Delete(ctx, id); err != nil {
		return err
	}
	if found, err := db.Users(ctx, []int64{id}); err != nil || len(found) != 0 {
		return fmt.Errorf("read %v, %w after deleting", found, err)
	}
	return nil
}

func readAll(ctx context.Context, db *DB) error {
	ids, err := db.ActiveIDs(ctx, users.ActiveQuery{Limit: 50})
	if err != nil {
		return err
	}
	if _, err := db.Users(ctx, ids); err != nil {
		return err
	}
	if _, err := db.Attributes(ctx, ids); err != nil {
		return err
	}
	_, err = db.Members(ctx, ids)
	return err
}
