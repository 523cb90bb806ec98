package main

import (
	"strings"
	"testing"
	"time"

	"pinion/internal/testserver"
)

// usual is how long a fault lasts.
const usual = 800 * time.Millisecond

// hold waits while a fault lasts, and looks at the descriptors meanwhile: what the
// instance opens beside those of its clients would be in excess of its pools, which
// prepare has filled. It looks at the probes too: with a full cache an instance is of use.
func (r *rig) hold(t *testing.T, lasts time.Duration, before [2]footprint) {
	t.Helper()
	const clients = 10 // of the load and of this
	var most float64
	for began := time.Now(); time.Since(began) < lasts; time.Sleep(50 * time.Millisecond) {
		most = max(most, r.a.metric(t, "process_open_fds"))
		for _, path := range []string{"/health", "/ready"} {
			if status, body := do(t, "GET", r.a.admin+path, ""); status != 200 {
				t.Errorf("%s: %d %s", path, status, body)
			}
		}
	}
	if limit := before[0].descriptors + clients; most > limit {
		t.Errorf("%v descriptors while it lasted, want at most %v", most, limit)
	}
}

// footprint is what an instance holds.
type footprint struct{ goroutines, descriptors float64 }

func (r *rig) measure(t *testing.T) (f [2]footprint) {
	t.Helper()
	r.c.close()
	for i, p := range []*process{r.a, r.b} {
		f[i] = footprint{p.metric(t, "go_goroutines"), p.metric(t, "process_open_fds")}
	}
	return f
}

// settled waits until the instances hold no more than before, and up to so many
// connections that they keep for later.
func (r *rig) settled(t *testing.T, before [2]footprint, kept int) {
	t.Helper()
	var now [2]footprint
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		now = r.measure(t)
		more := false
		for i := range now {
			more = more || now[i].goroutines > before[i].goroutines+6 || now[i].descriptors > before[i].descriptors+4+float64(kept)
		}
		if !more {
			t.Logf("goroutines and descriptors %v before, %v after %v", before, now, time.Since(began).Round(time.Millisecond))
			return
		}
		if time.Since(began) > 10*time.Second {
			t.Errorf("goroutines and descriptors %v before, %v now", before, now)
			return
		}
	}
}

// pools checks that the servers have no more connections than the instances may make.
// They may take a moment to know of those that have ended.
func (r *rig) pools(t *testing.T) {
	t.Helper()
	const (
		toDB    = 2 * 8
		toRedis = 2 * (4 + 1)
	)
	eventually(t, 10*time.Second, "MariaDB has no more connections than the pools", func() bool {
		return len(r.s.db.Admin("SELECT id FROM information_schema.processlist WHERE user = '"+testserver.User+"'")) <= toDB
	})
	eventually(t, 10*time.Second, "Redis has no more connections than the pools", func() bool {
		return strings.Count(r.s.ask(t, "CLIENT LIST"), "name=pinion") <= toRedis
	})
}
