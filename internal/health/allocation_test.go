//go:build !race

package health

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestNoAllocs(t *testing.T) {
	for name, answer := range map[string]error{"well": nil, "unreachable": errors.New("gone away")} {
		s := New(Config{Interval: time.Hour, Log: quiet(), Ping: func(context.Context) error { return answer }})
		s.SetReady()
		ctx := context.Background()
		_ = s.Check(ctx)
		if n := testing.AllocsPerRun(100, func() { _ = s.Check(ctx) }); n != 0 {
			t.Errorf("%s: %v allocations for a cached answer", name, n)
		}
	}
}
