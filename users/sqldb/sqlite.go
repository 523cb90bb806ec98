package sqldb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Page cache of each connection. SQLite's own default of 2 MB holds a few thousand
// users; the operating system's cache holds the rest either way, one system call away.
const cacheKiB = 8 << 10

// walKeepBytes is what the write-ahead log is cut to after it has been written back, so
// that one large transaction does not leave a large file behind.
const walKeepBytes = 64 << 20

// maxSwitchPause is the longest time between two looks whether a new file is free.
const maxSwitchPause = 50 * time.Millisecond

func (db *DB) openFile(ctx context.Context, opts Options) error {
	path := db.target.path
	if opts.Peers {
		db.turn = newTurn(path)
	}
	query := pragmas(opts)
	query.Set("_journal_mode", "WAL")
	query.Set("_synchronous", "FULL")
	query.Add("_pragma", "journal_size_limit("+strconv.Itoa(walKeepBytes)+")")
	var err error
	if db.write, err = openSQLite(driverName(path, query), 1); err != nil {
		return err
	}
	if err := db.switchToWAL(ctx, opts.BusyTimeout); err != nil {
		return err
	}
	if err := db.alone(ctx, db.migrate); err != nil {
		return err
	}
	if db.file, err = os.Stat(path); err != nil {
		return err
	}
	query = pragmas(opts)
	query.Set("mode", "ro")
	if db.read, err = openSQLite(driverName(path, query), opts.MaxConns); err != nil {
		return err
	}
	return fillPool(ctx, db.read, opts.MaxConns)
}

// switchToWAL connects, by which a new file gets its write-ahead log. Of several that do
// so at once SQLite refuses all but one without the wait that its busy timeout is for: the
// switch turns a lock for reading into one for writing, and two that wait for each other
// there would wait in vain. So the wait is here.
func (db *DB) switchToWAL(ctx context.Context, wait time.Duration) error {
	end := time.Now().Add(wait)
	for pause := time.Millisecond; ; pause = min(2*pause, maxSwitchPause) {
		var mode string
		err := db.write.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode)
		if err == nil && mode != "wal" {
			return fmt.Errorf("journal mode is %s: the file system does not support WAL", mode)
		}
		if err == nil || !isBusy(err) || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return cause(ctx, err)
		case <-time.After(pause):
		}
	}
}

// isBusy says whether somebody else's lock is what made err.
func isBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

// fillPool opens all connections now. Later there may be no descriptor left for them:
// clients take theirs first.
func fillPool(ctx context.Context, pool *sql.DB, size int) error {
	conns := make([]*sql.Conn, 0, size)
	defer func() {
		for _, c := range conns {
			_ = c.Close() // into the pool
		}
	}()
	for range size {
		c, err := pool.Conn(ctx)
		if err != nil {
			return err
		}
		conns = append(conns, c)
		if err := c.PingContext(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (db *DB) openMemory(ctx context.Context, opts Options) error {
	query := pragmas(opts)
	query.Set("vfs", "memdb")
	// A leading slash makes the name one database for all connections of the process;
	// chance makes it one for each Open.
	name := driverName("/pinion-"+rand.Text(), query)
	var err error
	if db.keep, err = openSQLite(name, 1); err != nil {
		return err
	}
	if err := db.keep.PingContext(ctx); err != nil {
		return err
	}
	if db.write, err = openSQLite(name, 1); err != nil {
		return err
	}
	db.read = db.write
	return db.alone(ctx, db.migrate)
}

// pragmas are the settings of every connection.
func pragmas(opts Options) url.Values {
	return url.Values{
		"_busy_timeout": {strconv.FormatInt(opts.BusyTimeout.Milliseconds(), 10)},
		"_foreign_keys": {"on"},
		"_dqs":          {"false"}, // a misspelt column is an error, not a string
		"_error_rc":     {"true"},  // errors without the leftovers of earlier ones
		"_pragma":       {"cache_size(-" + strconv.Itoa(cacheKiB) + ")", "temp_store(MEMORY)"},
	}
}

// openSQLite makes a pool that keeps all its connections: each has its own page cache and
// prepared statements, which are the costly part.
func openSQLite(name string, size int) (*sql.DB, error) {
	pool, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	return pool, nil
}

// driverName is the name by which the SQLite driver opens path with the given query.
func driverName(path string, query url.Values) string {
	u := url.URL{Path: path}
	return "file:" + u.EscapedPath() + "?" + query.Encode()
}

// sqliteVerdict: after a failed write or fsync of the log, recovery may still find the
// commit in it.
func sqliteVerdict(err error) verdict {
	var e *sqlite.Error
	if errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_IOERR {
		return lost
	}
	return refused
}
