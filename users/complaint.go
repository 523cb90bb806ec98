package users

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"
)

// complaint logs why a source that users can do without fails, once a second: there may be
// thousands of calls, and the reason is seen nowhere else.
type complaint struct {
	log    *slog.Logger
	source string
	last   atomic.Int64 // second of the last line
}

// about logs err, unless the caller ended the call.
func (c *complaint) about(ctx context.Context, err error) {
	if errors.Is(context.Cause(ctx), errNoWaiters) || errors.Is(err, context.Canceled) {
		return
	}
	now := time.Now().Unix()
	if last := c.last.Load(); last == now || !c.last.CompareAndSwap(last, now) {
		return
	}
	c.log.Warn("users go out without a part", "source", c.source, "error", err)
}
