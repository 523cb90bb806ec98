package sqldb

import (
	"context"
	"sync"
	"time"
)

const (
	// cleanEvery is the time between two removals of what is old by one instance.
	cleanEvery = 10 * time.Second
	// cleanAtMost is the number of rows of one statement: a write to SQLite waits for it.
	cleanAtMost = 1000
	// cleanTimeout is what one removal may take in all. The rest waits for the next.
	cleanTimeout = time.Second
)

// cleaner removes old rows now and then, in the background: no caller waits for it, and
// nothing depends on it, so nobody hears of its errors. The zero value is ready.
type cleaner struct {
	mu      sync.Mutex
	last    int64              // when the last removal began, unix microseconds
	cancel  context.CancelFunc // of the one that runs; nil: none does
	running sync.WaitGroup
	stopped bool
}

// start runs remove again and again until it removes fewer than cleanAtMost rows, unless
// one runs or has just run. now is in unix microseconds.
func (c *cleaner) start(now int64, remove func(context.Context) (int64, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped || c.cancel != nil || now-c.last < cleanEvery.Microseconds() {
		return
	}
	c.last = now
	var ctx context.Context
	ctx, c.cancel = context.WithTimeout(context.Background(), cleanTimeout)
	c.running.Go(func() {
		for {
			n, err := remove(ctx)
			if err != nil || n < cleanAtMost {
				break
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.cancel()
		c.cancel = nil
	})
}

// stop ends a removal that runs, and waits for its end. None starts afterwards.
func (c *cleaner) stop() {
	c.mu.Lock()
	c.stopped = true
	if c.cancel != nil {
		c.cancel()
	}
	c.mu.Unlock()
	c.running.Wait()
}
