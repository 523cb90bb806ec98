package users_test

import (
	"context"
	"math/rand/v2"
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

// Cold batches of many requests at the same time, as queries that are shared.
func BenchmarkLoadColdTogether(b *testing.B) {
	db := openDSN(b, "sqlite:"+b.TempDir()+"/users.db")
	const n = 20_000
	if _, err := db.Fill(context.Background(), n, nil); err != nil {
		b.Fatal(err)
	}
	s := newService(b, users.Config{Rows: db, Attributes: db, Members: db, L1Bytes: 1})
	b.SetParallelism(64)
	b.ResetTimer()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		batch := users.Batch{IDs: make([]int64, 20)}
		for pb.Next() {
			for i := range batch.IDs {
				batch.IDs[i] = 1 + (batch.IDs[max(i-1, 0)]+rand.Int64N(n/20))%n
			}
			if s.Cached(&batch) {
				b.Error("not cold")
			}
			if err := s.Load(context.Background(), &batch); err != nil {
				b.Error(err)
			}
		}
	})
}
