package users

import (
	"runtime"
	"testing"
)

// The weight of an entry must be what it costs, or the cap in bytes is none.
func TestL1Weight(t *testing.T) {
	const n = 100_000
	missing := newFragment(nil, 0)
	for name, fresh := range map[string]func() *Fragment{
		"users":   func() *Fragment { return newFragment(make([]byte, 400), 0) },
		"missing": func() *Fragment { return missing },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{}
			cfg.setDefaults()
			before := heap()
			cache := newL1(&cfg)
			defer cache.close()
			for id := range int64(n) {
				cache.set(id, fresh())
			}
			cache.cache.CleanUp()
			used, weight := float64(heap()-before)/n, float64(cache.cache.WeightedSize())/n
			runtime.KeepAlive(cache)
			t.Logf("heap %.0f bytes an entry, weight %.0f", used, weight)
			if weight < used*0.8 || weight > used*1.6 {
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
		cache.set(id, newFragment(make([]byte, 1000), 0))
	}
	cache.set(-1, newFragment(make([]byte, 2<<20), 0)) // larger than all
	cache.cache.CleanUp()
	if got := cache.cache.WeightedSize(); got > 1<<20 || got < 1<<19 {
		t.Errorf("holds %d bytes, want at most %d and at least half of it", got, 1<<20)
	}
	if _, ok := cache.get(-1); ok {
		t.Error("keeps an entry larger than the cache")
	}
}
