package users_test

import (
	"context"
	"testing"

	"pinion/users"
)

func BenchmarkCached(b *testing.B) {
	db := openDB(b)
	if _, err := db.Fill(context.Background(), 100, nil); err != nil {
		b.Fatal(err)
	}
	s := newService(b, newGate(db).config())
	batch := users.Batch{}
	for id := range int64(20) {
		batch.IDs = append(batch.IDs, id+1)
	}
	mustLoad(b, s, batch.IDs...)
	b.Run("user", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if s.CachedUser(0, 7) == nil {
				b.Fatal("miss")
			}
		}
	})
	b.Run("batch=20", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !s.Cached(&batch) {
				b.Fatal("miss")
			}
		}
	})
}

// A cold batch: flight, three queries, encoding, insert.
func BenchmarkLoadCold(b *testing.B) {
	for name, dsn := range map[string]string{"memory": "sqlite::memory:", "file": "sqlite:" + b.TempDir() + "/users.db"} {
		b.Run(name, func(b *testing.B) {
			db := openDSN(b, dsn)
			const n = 20_000
			if _, err := db.Fill(context.Background(), n, nil); err != nil {
				b.Fatal(err)
			}
			// So small that nothing stays.
			s := newService(b, users.Config{Rows: db, Attributes: db, Members: db, L1Bytes: 1})
			batch := users.Batch{IDs: make([]int64, 20)}
			next := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				for i := range batch.IDs {
					next = (next + 1) % n
					batch.IDs[i] = 1 + next
				}
				if s.Cached(&batch) {
					b.Fatal("not cold")
				}
				if err := s.Load(context.Background(), &batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
