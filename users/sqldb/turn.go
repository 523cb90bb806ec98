package sqldb

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// turn is the right to write to a SQLite file that several processes write to. SQLite
// itself has those who come second look again and again, with longer and longer pauses,
// and whoever looks at the right moment is next: some wait for seconds. Here the kernel
// queues them.
//
// There are two locks. A writer takes the place of the next one, waits there for its
// turn, and then makes the place free. So a process that has just written cannot be
// next before one that waits.
type turn struct {
	next, now string // paths of the files that are locked
}

func newTurn(path string) *turn { return &turn{next: path + "-next", now: path + "-turn"} }

// take waits for the turn until ctx ends. The caller must call done soon, once.
func (t *turn) take(ctx context.Context) (done func(), err error) {
	next, err := lock(ctx, t.next)
	if err != nil {
		return nil, err
	}
	defer next.Close() //nolint:errcheck // closing it gives the lock back
	now, err := lock(ctx, t.now)
	if err != nil {
		return nil, err
	}
	return func() { _ = now.Close() }, nil
}

// lock locks the file at path, which it makes if need be, until it is closed.
func lock(ctx context.Context, path string) (*os.File, error) {
	// A file of its own for each: locks belong to the open file, and one that was
	// waited for in vain must not be taken for another's.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = tryLock(f)
	if !errors.Is(err, errLocked) {
		if err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return f, nil
	}
	locked := make(chan error, 1)
	go func() { locked <- waitLock(f) }()
	select {
	case err := <-locked:
		if err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return f, nil
	case <-ctx.Done():
		go func() { // a system call cannot be called back
			<-locked //nolint:errcheck // whatever came of it
			_ = f.Close()
		}()
		return nil, ctx.Err()
	}
}
