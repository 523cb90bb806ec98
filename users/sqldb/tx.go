package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"pinion/users"
)

const (
	// maxTries is how often a transaction is begun that others get in the way of.
	maxTries = 4
	// retryPause is the mean pause before the first retry; each further one is longer.
	retryPause = 5 * time.Millisecond
	// rollbackTimeout is what a transaction that failed may take to give its connection
	// back in order. Past it the connection is closed, which ends the transaction too.
	rollbackTimeout = time.Second
)

// errAgain is for a transaction that found something half done by another.
var errAgain = errors.New("another transaction got in the way")

// tx is a transaction.
type tx struct {
	conn    *sql.Conn
	dialect *dialect
}

// exec runs a statement and returns the number of rows it found.
func (t *tx) exec(ctx context.Context, text string, args ...any) (int64, error) {
	result, err := t.conn.ExecContext(ctx, t.dialect.bind(text), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// insert runs an INSERT of one row and returns the id that the database gave it.
func (t *tx) insert(ctx context.Context, text string, args ...any) (id int64, err error) {
	if t.dialect.returns {
		err = t.queryRow(ctx, text+" RETURNING id", args...).Scan(&id)
		return id, err
	}
	result, err := t.conn.ExecContext(ctx, t.dialect.bind(text), args...)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

func (t *tx) queryRow(ctx context.Context, text string, args ...any) *sql.Row {
	return t.conn.QueryRowContext(ctx, t.dialect.bind(text), args...)
}

// inTx commits what f does, or nothing of it. f runs again, on a new transaction, where
// others got in the way. An error that matches users.ErrUnknownOutcome means that the
// commit may have been done; after any other it has not.
func (db *DB) inTx(ctx context.Context, f func(*tx) error) error {
	for try := 1; ; try++ {
		err := db.onceInTx(ctx, f)
		again := err != nil && !errors.Is(err, users.ErrUnknownOutcome) &&
			(errors.Is(err, errAgain) || errors.Is(err, driver.ErrBadConn) || db.dialect.verdict(err) == conflict)
		if !again || try == maxTries || !pause(ctx, try) {
			return err
		}
	}
}

// pause waits, longer before each try, and by chance, so that those who met do not meet
// again. It reports whether there is time left.
func pause(ctx context.Context, try int) bool {
	most := 2 * int64(retryPause) << (try - 1)
	timer := time.NewTimer(time.Duration(rand.Int64N(most)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (db *DB) onceInTx(ctx context.Context, f func(*tx) error) error {
	if db.queue != nil {
		// A channel serves those who wait in their order, a pool by chance.
		select {
		case db.queue <- struct{}{}:
			defer func() { <-db.queue }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return cause(ctx, err)
	}
	defer conn.Close() //nolint:errcheck // it goes back into the pool, or is gone already
	if db.turn != nil {
		done, err := db.turn.take(ctx)
		if err != nil {
			return cause(ctx, err)
		}
		defer done()
	}
	return db.runTx(ctx, conn, f)
}

// runTx runs one transaction on conn.
func (db *DB) runTx(ctx context.Context, conn *sql.Conn, f func(*tx) error) error {
	finished := false
	defer func() {
		if !finished {
			db.rollBack(ctx, conn)
		}
	}()
	_, err := conn.ExecContext(ctx, db.dialect.begin)
	if err == nil {
		err = f(&tx{conn: conn, dialect: db.dialect})
	}
	if err == nil {
		err = ctx.Err() // too late to begin a commit
	}
	if err != nil {
		return cause(ctx, err)
	}
	commit := ctx
	if !db.dialect.server {
		// It takes one fsync. Cut off in it, nobody knew what came of it.
		commit = context.WithoutCancel(ctx)
	}
	_, err = conn.ExecContext(commit, "COMMIT")
	finished = err == nil
	// ErrBadConn promises that nothing was sent.
	if err != nil && !errors.Is(err, driver.ErrBadConn) && db.dialect.verdict(err) == lost {
		return fmt.Errorf("%w: %w", users.ErrUnknownOutcome, err)
	}
	return err
}

// cause is the error of ctx once that has ended: the statement's own then only tells of
// the pieces.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// rollBack ends a transaction, or the connection if that cannot be done in order. A
// caller whose time is over does not wait for a server.
func (db *DB) rollBack(ctx context.Context, conn *sql.Conn) {
	if db.dialect.server && ctx.Err() != nil {
		discard(conn)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		discard(conn)
	}
}

// discard closes a connection instead of giving it back to its pool.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // the way to say so
}
