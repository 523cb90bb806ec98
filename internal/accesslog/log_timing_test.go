package accesslog

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
)

// BenchmarkLine is all that a line costs but the Write: Record, and taking it from
// the ring.
func BenchmarkLine(b *testing.B) {
	l := New(Config{Mode: All(), Out: io.Discard})
	if err := l.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	l.ring = newRing(DefaultLines) // this goroutine is the consumer now
	e := entry()
	batch := make([]byte, 0, l.batch)
	b.ReportAllocs()
	for b.Loop() {
		l.Record(0, e)
		if batch, _ = l.gather(batch[:0]); len(batch) == 0 {
			b.Fatal("no line")
		}
	}
	b.SetBytes(int64(len(batch)))
}

// BenchmarkFull is what a request pays when the ring is full and its line dropped.
func BenchmarkFull(b *testing.B) {
	l := New(Config{Mode: All(), Out: io.Discard})
	if err := l.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	l.ring = newRing(4)
	var workers atomic.Uint64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		shard, e := workers.Add(1), entry()
		for pb.Next() {
			l.Record(shard, e)
		}
	})
	if got := l.dropped.Value(); got+4 < uint64(b.N) {
		b.Fatalf("%d dropped of %d", got, b.N)
	}
}

// BenchmarkWants is what a request pays that is not logged.
func BenchmarkWants(b *testing.B) {
	for _, s := range []string{"errors", "1/1000"} {
		b.Run(s, func(b *testing.B) {
			mode, err := ParseMode(s)
			if err != nil {
				b.Fatal(err)
			}
			l := New(Config{Mode: mode, Out: io.Discard})
			var workers atomic.Uint64
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				shard := workers.Add(1)
				for pb.Next() {
					l.Wants(shard, 200)
				}
			})
			_ = l.Close(context.Background())
		})
	}
}
