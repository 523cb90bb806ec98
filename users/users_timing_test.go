package users

import "testing"

var sinkBytes []byte

func BenchmarkAppendUser(b *testing.B) {
	for name, c := range encodeCases() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sinkBytes = appendUser(sinkBytes[:0], &c.user, c.degraded)
			}
			b.SetBytes(int64(len(sinkBytes)))
		})
	}
}

func BenchmarkL1Get(b *testing.B) {
	cfg := Config{}
	cfg.setDefaults()
	cache := newL1(&cfg)
	defer cache.close()
	const n = 1 << 14
	for id := range int64(n) {
		cache.set(id, newFragment([]byte("{}"), 0), 0)
	}
	b.ReportAllocs()
	var id int64
	for b.Loop() {
		if _, ok := cache.get(id & (n - 1)); !ok {
			b.Fatal(id)
		}
		id += 7919
	}
}
