package rediscache

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// sampleInterval bounds how often Redis is asked for the age of a removal.
const sampleInterval = 10 * time.Millisecond

// sample measures how long ago removals were, after they have been handled here. It asks
// for both times of the server's own clock, so the round trip counts and the clock here
// does not. The push of an expired key is none of a removal: its value is gone.
func (c *Cache) sample(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-c.samples:
			if age, ok := c.age(ctx, id); ok {
				c.staleness.Observe(uint64(id), age)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(sampleInterval):
		}
	}
}

func (c *Cache) age(ctx context.Context, id int64) (time.Duration, bool) {
	if c.usable(ctx) != nil {
		return 0, false
	}
	results, err := c.do(ctx,
		c.client.B().Get().Key(key(voidPrefix, id)).Build(),
		c.client.B().Time().Build())
	if err != nil {
		return 0, false
	}
	removed, err := results[0].AsInt64()
	if err != nil {
		return 0, false
	}
	now, ok := serverTime(results[1])
	return time.Duration(now-removed) * time.Microsecond, ok
}

// serverTime reads the answer of TIME: seconds and microseconds.
func serverTime(r rueidis.RedisResult) (microseconds int64, ok bool) {
	parts, err := r.AsStrSlice()
	if err != nil || len(parts) != 2 {
		return 0, false
	}
	s, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return 0, false
	}
	us, err := strconv.ParseInt(parts[1], 10, 64)
	return s*1_000_000 + us, err == nil
}
