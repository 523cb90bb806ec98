package cell

import (
	"testing"
	"time"
)

func TestRestarts(t *testing.T) {
	const ms = time.Millisecond
	rule := Restart{Min: 100 * ms, Max: time.Second, Stable: time.Minute, Limit: 5, Window: time.Minute}
	unlimited := rule
	unlimited.Limit = 1000
	never := rule
	never.Limit = -1
	type end struct {
		lived time.Duration // after which it ended
		wait  time.Duration // -1: gives up
	}
	for name, c := range map[string]struct {
		rule Restart
		ends []end
	}{
		"doubles": {unlimited, []end{
			{0, 100 * ms},
			{0, 200 * ms},
			{0, 400 * ms},
			{0, 800 * ms},
			{0, time.Second},
			{0, time.Second},
		}},
		"gives up":      {rule, []end{{0, 100 * ms}, {0, 200 * ms}, {0, 400 * ms}, {0, 800 * ms}, {0, time.Second}, {0, -1}}},
		"at once":       {never, []end{{time.Hour, -1}}},
		"stable":        {rule, []end{{0, 100 * ms}, {0, 200 * ms}, {time.Minute, 100 * ms}, {0, 200 * ms}}},
		"nearly stable": {rule, []end{{0, 100 * ms}, {time.Minute - 1, 200 * ms}}},
		"out of the window": {rule, []end{
			{0, 100 * ms},
			{30 * time.Second, 200 * ms},
			{30 * time.Second, 400 * ms},
			{30 * time.Second, 800 * ms},
			{30 * time.Second, time.Second},
			{30 * time.Second, time.Second},
			{30 * time.Second, time.Second},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := restarts{rule: c.rule}
			now := time.Unix(0, 0)
			for i, e := range c.ends {
				now = now.Add(e.lived)
				wait, ok := r.after(e.lived, now)
				if !ok {
					wait = -1
				}
				if wait != e.wait {
					t.Fatalf("end %d: wait %v, want %v", i, wait, e.wait)
				}
				now = now.Add(max(wait, 0))
			}
		})
	}
}
