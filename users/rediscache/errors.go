package rediscache

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

// ErrDown says that Redis does not answer, or did not in time.
var ErrDown = errors.New("redis does not answer")

// ErrClosed says that the Cache is closed.
var ErrClosed = errors.New("redis client is closed")

// ErrRefused says that Redis refuses what the URL says: user, password or database.
var ErrRefused = errors.New("redis refuses the user, the password or the database")

// failure makes the error of a call that got no reply. inTime is ctx with our own limit.
func (c *Cache) failure(ctx, inTime context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case c.closing.Err() != nil:
		return ErrClosed
	case inTime.Err() != nil:
		return fmt.Errorf("%w within %v", ErrDown, c.timeout)
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		// Of a dial. It must not look like the caller's.
		return fmt.Errorf("%w: %v", ErrDown, err) //nolint:errorlint // see above
	}
	return fmt.Errorf("%w: %w", ErrDown, err)
}

// refused reports whether err is Redis saying that the URL is wrong. Other refusals, such
// as LOADING, pass with time.
func refused(err error) bool {
	reply, ok := rueidis.IsRedisErr(err)
	if !ok {
		return false
	}
	text := reply.Error() // without the ERR that many begin with
	for _, prefix := range []string{"WRONGPASS", "NOAUTH", "AUTH ", "invalid password", "DB index", "invalid DB"} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}
