package engine

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestTimersAgainstModel compares the wheels with a plain map on random
// operations: nothing is due early, and nothing later than a bucket.
func TestTimersAgainstModel(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var ts timers
		ts.slack = 3
		for w := waitNone + 1; w < waits; w++ {
			ts.timeout[w] = time.Duration(w) * 10
		}
		ts.timeout[waitGone] = 0
		conns := make([]*conn, 50)
		for i := range conns {
			conns[i] = &conn{slot: int32(i)}
		}
		model := map[*conn]int64{}
		now := int64(1)
		for range 20_000 {
			c := conns[rng.IntN(len(conns))]
			switch rng.IntN(5) {
			case 0, 1:
				w := 1 + wait(rng.IntN(int(waits)-1))
				ts.set(c, w, now)
				delete(model, c)
				if d := ts.timeout[w]; d > 0 {
					model[c] = now + int64(d) + 3
				}
			case 2:
				ts.clear(c)
				delete(model, c)
			case 3:
				ts.clear(c)
				at := now + int64(rng.IntN(40)) // also further ahead than the wheel reaches
				ts.insert(c, waitIdle, at, now)
				model[c] = at
			case 4:
				now += int64(rng.IntN(5))
				if rng.IntN(100) == 0 {
					now += 500 // the loop was late, or had nothing to wait for
				}
				for {
					c, _ := ts.due(now)
					if c == nil {
						break
					}
					if at, ok := model[c]; !ok || at > now {
						t.Fatalf("seed %d: %d is due at %d, its deadline is %d (%v)", seed, c.slot, now, at, ok)
					}
					delete(model, c)
				}
				for c, at := range model {
					if at+ts.wheels[c.waiting].width <= now {
						t.Fatalf("seed %d: %d is late: deadline %d, now %d", seed, c.slot, at, now)
					}
				}
			}
		}
	}
}

func TestTimeoutOptions(t *testing.T) {
	for _, tt := range []struct {
		s                *Server
		head, idle, body time.Duration
		tick             time.Duration
	}{
		{&Server{}, 10 * time.Second, 0, 0, time.Second},
		{&Server{ReadTimeout: 4 * time.Second}, 4 * time.Second, 4 * time.Second, time.Second, 500 * time.Millisecond},
		{&Server{ReadTimeout: time.Minute, IdleTimeout: time.Hour, HeaderTimeout: time.Second}, time.Second, time.Hour, time.Second, 125 * time.Millisecond},
		{&Server{HeaderTimeout: -1, IdleTimeout: time.Millisecond}, -1, time.Millisecond, 0, 5 * time.Millisecond},
		{&Server{MinBodyRate: 1}, 10 * time.Second, 0, time.Second, time.Second},
	} {
		ts := tt.s.timers()
		if ts.timeout[waitHead] != tt.head || ts.timeout[waitIdle] != tt.idle || ts.timeout[waitBody] != tt.body || ts.slack != tt.tick {
			t.Errorf("%+v: head %v, idle %v, body %v, tick %v", tt, ts.timeout[waitHead], ts.timeout[waitIdle], ts.timeout[waitBody], ts.slack)
		}
	}
}
