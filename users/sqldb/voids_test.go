package sqldb

import (
	"context"
	"testing"
	"time"

	"pinion/users"
)

func TestVoidLog(t *testing.T) {
	onAll(t, Options{}, func(t *testing.T, db *DB) {
		ctx := context.Background()
		for _, limit := range []int{-1, 0, 10} {
			if got, err := db.Voids(ctx, limit); err != nil || len(got) != 0 {
				t.Fatalf("Voids(%d) of an empty log = %v, %v", limit, got, err)
			}
		}
		ids := []int64{7, 3, 7, 1 << 62} // an id may be owed twice
		for _, id := range ids {
			if err := db.AddVoid(ctx, id); err != nil {
				t.Fatal(err)
			}
		}
		got, err := db.Voids(ctx, 10)
		if err != nil || len(got) != len(ids) {
			t.Fatalf("Voids = %v, %v", got, err)
		}
		for i, v := range got {
			if v.ID != ids[i] || i > 0 && v.Seq <= got[i-1].Seq {
				t.Errorf("entry %d is %+v", i, v)
			}
		}
		if two, err := db.Voids(ctx, 2); err != nil || len(two) != 2 || two[1] != got[1] {
			t.Errorf("Voids(2) = %v, %v", two, err)
		}
		if err := db.DropVoids(ctx, nil); err != nil {
			t.Error(err)
		}
		if err := db.DropVoids(ctx, []int64{got[0].Seq, got[2].Seq, got[0].Seq, 1 << 40}); err != nil {
			t.Error(err)
		}
		left, err := db.Voids(ctx, 10)
		if err != nil || len(left) != 2 || left[0] != got[1] || left[1] != got[3] {
			t.Errorf("left are %v, %v", left, err)
		}
	})
}

// More entries than one statement takes.
func TestDropManyVoids(t *testing.T) {
	onAll(t, Options{}, func(t *testing.T, db *DB) {
		ctx := context.Background()
		const n = maxList + 3
		args := make([]any, 0, 2*n)
		for i := range n {
			args = append(args, i, time.Now().UnixMicro())
		}
		text := "INSERT INTO cache_voids (user_id, created_at) VALUES " + tuples(n, 2)
		if _, err := db.write.Exec(db.dialect.bind(text), args...); err != nil {
			t.Fatal(err)
		}
		got, err := db.Voids(ctx, 2*n)
		if err != nil || len(got) != n {
			t.Fatal(len(got), err)
		}
		var seqs []int64
		for _, v := range got[1:] {
			seqs = append(seqs, v.Seq)
		}
		if err := db.DropVoids(ctx, seqs); err != nil {
			t.Fatal(err)
		}
		if left, err := db.Voids(ctx, n); err != nil || len(left) != 1 || left[0] != got[0] {
			t.Errorf("left are %v, %v", left, err)
		}
	})
}

// What is owed for longer than the shared cache keeps anything is owed no more.
func TestOldVoids(t *testing.T) {
	onAll(t, Options{Now: instant}, func(t *testing.T, db *DB) {
		ctx := context.Background()
		const old = cleanAtMost + 200 // more than one round
		oldest := instant().Add(-voidLifetime).UnixMicro()
		for i := 0; i < old; {
			rows := min(old-i, maxList)
			args := make([]any, 0, 2*rows)
			for range rows {
				args = append(args, i, oldest-1)
				i++
			}
			text := "INSERT INTO cache_voids (user_id, created_at) VALUES " + tuples(rows, 2)
			if _, err := db.write.Exec(db.dialect.bind(text), args...); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.write.Exec(db.dialect.bind(insertVoid), 7, oldest); err != nil {
			t.Fatal(err)
		}
		if err := db.AddVoid(ctx, 8); err != nil {
			t.Fatal(err)
		}
		// They come behind more old ones than are asked for.
		got, err := db.Voids(ctx, 10)
		if err != nil || len(got) != 2 || got[0].ID != 7 || got[1].ID != 8 {
			t.Fatalf("Voids = %v, %v", got, err)
		}
		db.oldVoids.running.Wait()
		if n := countRows(t, db, "cache_voids"); n != 2 {
			t.Errorf("%d entries are left, want 2", n)
		}
		if left, err := db.Voids(ctx, 10); err != nil || len(left) != 2 || left[0] != got[0] || left[1] != got[1] {
			t.Errorf("left are %v, %v", left, err)
		}
	})
}

func TestAttributesElsewhere(t *testing.T) {
	onAll(t, Options{AttributesElsewhere: true}, func(t *testing.T, db *DB) {
		ctx := context.Background()
		if _, err := db.Fill(ctx, 20, nil); err != nil {
			t.Fatal(err)
		}
		id := mustCreate(t, db, keyed("k"))
		before := mustUser(t, db, id)
		if err := db.Update(ctx, id, users.Patch{Attributes: &[]users.Attribute{{Key: "x"}}}); err != nil {
			t.Fatal(err)
		}
		if after := mustUser(t, db, id); !after.UpdatedAt.After(before.UpdatedAt) {
			t.Error("a patch of attributes does not touch the user")
		}
		if n := countRows(t, db, "user_attributes"); n != 0 {
			t.Errorf("%d attributes stored", n)
		}
		// The key still covers them.
		changed := keyed("k")
		changed.Attributes = nil
		if _, err := db.Create(ctx, changed); err == nil {
			t.Error("other attributes under the same key")
		}
	})
}
