package sqldb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"pinion/users"
)

// DefaultBusyTimeout is the default of Options.BusyTimeout.
const DefaultBusyTimeout = 5 * time.Second

// Page cache of each connection. SQLite's own default of 2 MB holds a few thousand
// users; the operating system's cache holds the rest either way, one system call away.
const cacheKiB = 8 << 10

// walKeepBytes is what the write-ahead log is cut to after it has been written back, so
// that one large transaction does not leave a large file behind.
const walKeepBytes = 64 << 20

// Options says which database to open. Only DSN is required.
type Options struct {
	// DSN names the database: "sqlite:FILE", created if it does not exist, or
	// "sqlite::memory:", which is gone after Close.
	DSN string
	// Readers is the number of reading connections. Zero or less means two per
	// GOMAXPROCS, at least four. An in-memory database has one connection in all.
	Readers int
	// BusyTimeout is how long a statement waits for another process's lock. Zero or
	// less means DefaultBusyTimeout.
	BusyTimeout time.Duration
	// Now is the clock of created_at and updated_at; nil: time.Now.
	Now func() time.Time
}

// DB is an open database. Its methods are safe for concurrent use.
type DB struct {
	read, write *sql.DB // the same for an in-memory database
	keep        *sql.DB // holds an in-memory database while its connection is replaced; else nil
	now         func() time.Time

	path string      // of the file; empty for an in-memory database
	file os.FileInfo // what was at path when it was opened

	rows, attributes, members *listQuery
	active                    *activeQuery
	address                   *sql.Stmt
}

var (
	_ users.Rows            = (*DB)(nil)
	_ users.AttributeSource = (*DB)(nil)
	_ users.MemberSource    = (*DB)(nil)
)

// Open opens the database and brings its schema up to date. The error matches
// ErrUnsupported when DSN itself is wrong; otherwise it names the file. The caller
// must Close the DB.
func Open(ctx context.Context, opts Options) (*DB, error) {
	path, err := parseDSN(opts.DSN)
	if err != nil {
		return nil, err
	}
	if opts.Readers <= 0 {
		opts.Readers = max(4, 2*runtime.GOMAXPROCS(0))
	}
	if opts.BusyTimeout <= 0 {
		opts.BusyTimeout = DefaultBusyTimeout
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	db := &DB{now: opts.Now}
	if path == memoryName {
		err = db.openMemory(ctx, opts)
	} else {
		err = db.openFile(ctx, path, opts)
	}
	if err == nil {
		err = db.prepare(ctx)
	}
	if err != nil {
		_ = db.Close() // the first error says more
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	return db, nil
}

func (db *DB) openFile(ctx context.Context, path string, opts Options) error {
	query := pragmas(opts)
	query.Set("_txlock", "immediate")
	query.Set("_journal_mode", "WAL")
	query.Set("_synchronous", "FULL")
	query.Add("_pragma", "journal_size_limit("+strconv.Itoa(walKeepBytes)+")")
	var err error
	if db.write, err = openPool(driverName(path, query), 1); err != nil {
		return err
	}
	var mode string
	if err := db.write.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("journal mode is %s: the file system does not support WAL", mode)
	}
	if err := migrate(ctx, db.write, db.now); err != nil {
		return err
	}
	if db.file, err = os.Stat(path); err != nil {
		return err
	}
	db.path = path
	query = pragmas(opts)
	query.Set("mode", "ro")
	if db.read, err = openPool(driverName(path, query), opts.Readers); err != nil {
		return err
	}
	return fillPool(ctx, db.read, opts.Readers)
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
	query.Set("_txlock", "immediate")
	query.Set("vfs", "memdb")
	// A leading slash makes the name one database for all connections of the process;
	// chance makes it one for each Open.
	name := driverName("/pinion-"+rand.Text(), query)
	var err error
	if db.keep, err = openPool(name, 1); err != nil {
		return err
	}
	if err := db.keep.PingContext(ctx); err != nil {
		return err
	}
	if db.write, err = openPool(name, 1); err != nil {
		return err
	}
	db.read = db.write
	return migrate(ctx, db.write, db.now)
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

// openPool makes a pool that keeps all its connections: each has its own page cache and
// prepared statements, which are the costly part.
func openPool(name string, size int) (*sql.DB, error) {
	pool, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	return pool, nil
}

func (db *DB) prepare(ctx context.Context) error {
	db.rows = &listQuery{pool: db.read, head: selectRows, column: "id"}
	db.attributes = &listQuery{pool: db.read, head: selectAttributes, column: "user_id"}
	db.members = &listQuery{pool: db.read, head: selectMembers, column: "user_id"}
	db.active = &activeQuery{pool: db.read}
	var err error
	db.address, err = db.read.PrepareContext(ctx, selectAddress)
	return err
}

// Close closes all connections. Calls in progress must have returned. An in-memory
// database is gone afterwards.
func (db *DB) Close() error {
	var errs []error
	if db.read != nil && db.read != db.write {
		errs = append(errs, db.read.Close())
	}
	// Last, so that the last connection can write the log back into the file.
	if db.write != nil {
		errs = append(errs, db.write.Close())
	}
	if db.keep != nil {
		errs = append(errs, db.keep.Close())
	}
	return errors.Join(errs...)
}

// errReplaced keeps a database whose file was removed or replaced from looking well:
// what is written to it is gone with the process.
var errReplaced = errors.New("the file is not the one that was opened")

// Ping reads from the database, and checks that its file is still where it was.
func (db *DB) Ping(ctx context.Context) error {
	if db.path != "" {
		now, err := os.Stat(db.path)
		if err == nil && !os.SameFile(now, db.file) {
			err = errReplaced
		}
		if err != nil {
			return fmt.Errorf("ping database %s: %w", db.path, err)
		}
	}
	var version int
	if err := db.read.QueryRowContext(ctx, selectVersion).Scan(&version); err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	return nil
}
