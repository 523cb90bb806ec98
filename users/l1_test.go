package users

import (
	"bytes"
	"runtime"
	"testing"
)

// The weight of an entry must be what it costs, or the cap in bytes is none.
func TestL1Weight(t *testing.T) {
	missing, text := newMissing(), make([]byte, 5000)
	for name, tt := range map[string]struct {
		n     int
		fresh func() *Fragment
	}{
		"users":       {100_000, func() *Fragment { return newFragment(bytes.Clone(text[:400]), 0) }},
		"large users": {20_000, func() *Fragment { return newFragment(bytes.Clone(text[:4100]), 0) }},
		"missing":     {100_000, func() *Fragment { return missing }},
	} {
		t.Run(name, func(t *testing.T) {
			n := tt.n
			cfg := Config{}
			cfg.setDefaults()
			before := heap()
			cache := newL1(&cfg)
			defer cache.close()
			for id := range int64(n) {
				cache.set(id, tt.fresh(), cache.clock.NowNano())
			}
			cache.cache.Load().CleanUp()
			used, weight := float64(heap()-before)/float64(n), float64(cache.cache.Load().WeightedSize())/float64(n)
			runtime.KeepAlive(cache)
			t.Logf("heap %.0f bytes an entry, weight %.0f", used, weight)
			if weight < used*0.95 || weight > used*1.6 {
				t.Errorf("an entry uses %.0f bytes of heap and weighs %.0f", used, weight)
			}
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// The cap holds, whatever is put in.
func TestL1Cap(t *testing.T) {
	cfg := Config{L1Bytes: 1 << 20}
	cfg.setDefaults()
	cache := newL1(&cfg)
	defer cache.close()
	for id := range int64(10_000) {
		cache.set(id, newFragment(make([]byte, 1000), 0), 0)
	}
	cache.set(-1, newFragment(make([]byte, 2<<20), 0), 0) // larger than all
	cache.cache.Load().CleanUp()
	if got := cache.cache.Load().WeightedSize(); got > 1<<20 || got < 1<<19 {
		t.Errorf("holds %d bytes, want at most %d and at least half of it", got, 1<<20)
	}
	if _, ok := cache.get(-1); ok {
		t.Error("keeps an entry larger than the cache")
	}
}
