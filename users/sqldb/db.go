package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"pinion/users"
)

const (
	// DefaultBusyTimeout is the default of Options.BusyTimeout.
	DefaultBusyTimeout = 5 * time.Second
	// DefaultTimeout is the default of Options.Timeout.
	DefaultTimeout = 5 * time.Second

	// maxLifetime is when a connection to a server is replaced, so that load finds its
	// way to a server that came back. Servers, and what is in front of them, close
	// connections too; MySQL says when.
	maxLifetime = 30 * time.Minute
)

// Options says which database to open. Only DSN is required.
type Options struct {
	// DSN names the database: "sqlite:FILE", created if it does not exist;
	// "sqlite::memory:", which is gone after Close;
	// "mysql://USER:PASSWORD@HOST:PORT/NAME" for MySQL or MariaDB; or
	// "postgres://USER:PASSWORD@HOST:PORT/NAME". Package documentation has the
	// parameters that may follow after "?".
	DSN string
	// MaxConns is the number of connections. They are opened when needed and then kept.
	// Zero or less means four per GOMAXPROCS, at least 8 and at most 64.
	//
	// Of a SQLite file it is the number of reading connections, all opened at once, and
	// zero or less means two per GOMAXPROCS, at least four. An in-memory database has one
	// connection in all.
	MaxConns int
	// Timeout bounds the time to connect to a server, and with MySQL every single wait for
	// the server. It is the last resort for callers without a deadline: contexts end
	// calls earlier. Zero or less means DefaultTimeout.
	Timeout time.Duration
	// BusyTimeout is how long a statement of SQLite waits for another process's lock. Zero
	// or less means DefaultBusyTimeout.
	BusyTimeout time.Duration
	// Peers says that other processes write to the same SQLite file, with Peers too: writers
	// then queue in the order they come, by locks on two files beside it.
	Peers bool
	// AttributesElsewhere makes Create, Update and Fill leave attributes out: the caller
	// stores them.
	AttributesElsewhere bool
	// Now is the clock of all times that are stored; nil: time.Now.
	Now func() time.Time
}

// DB is an open database. Its methods are safe for concurrent use.
type DB struct {
	target  target
	dialect *dialect
	timeout time.Duration
	now     func() time.Time
	leave   bool // attributes to the caller

	read, write *sql.DB       // two for a SQLite file, else the same
	keep        *sql.DB       // holds an in-memory database while its connection is replaced; else nil
	file        os.FileInfo   // the SQLite file when it was opened; else nil
	queue       chan struct{} // of those who write to SQLite, one at a time; nil on a server
	turn        *turn         // before each transaction that writes; nil: there is no need

	rows, attributes, members *listQuery
	active                    *activeQuery
	address                   queryer

	oldKeys, oldVoids cleaner
}

var (
	_ users.Rows            = (*DB)(nil)
	_ users.AttributeSource = (*DB)(nil)
	_ users.MemberSource    = (*DB)(nil)
	_ users.VoidLog         = (*DB)(nil)
)

// Open opens the database and brings its schema up to date. The error matches
// ErrUnsupported when DSN itself is wrong; otherwise it names the file or the server. It
// never holds the password. The caller must Close the DB.
func Open(ctx context.Context, opts Options) (*DB, error) {
	t, err := parseDSN(opts.DSN)
	if err != nil {
		return nil, err
	}
	procs := runtime.GOMAXPROCS(0)
	if opts.MaxConns <= 0 && t.dialect.server {
		opts.MaxConns = min(max(8, 4*procs), 64)
	} else if opts.MaxConns <= 0 {
		opts.MaxConns = max(4, 2*procs)
	}
	if opts.Timeout <= 0 {
		opts.Timeout = DefaultTimeout
	}
	if opts.BusyTimeout <= 0 {
		opts.BusyTimeout = DefaultBusyTimeout
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	db := &DB{target: t, dialect: t.dialect, timeout: opts.Timeout, now: opts.Now, leave: opts.AttributesElsewhere}
	if !t.dialect.server {
		db.queue = make(chan struct{}, 1)
	}
	switch {
	case t.dialect.server:
		err = db.openServer(ctx, opts)
	case t.path == memoryName:
		err = db.openMemory(ctx, opts)
	default:
		err = db.openFile(ctx, opts)
	}
	if err == nil {
		err = db.prepare(ctx)
	}
	if err != nil {
		_ = db.Close() // the first error says more
		return nil, fmt.Errorf("open database %s: %w", &t, t.hide(err))
	}
	return db, nil
}

func (db *DB) openServer(ctx context.Context, opts Options) error {
	c, err := db.connector(true)
	if err != nil {
		return err
	}
	db.read = sql.OpenDB(c)
	db.write = db.read
	// All are kept: one that is given up is soon needed again, and costs several round
	// trips and a thread or a process of the server's.
	db.read.SetMaxOpenConns(opts.MaxConns)
	db.read.SetMaxIdleConns(opts.MaxConns)
	if err := db.alone(ctx, db.migrate); err != nil {
		return err
	}
	lifetime := maxLifetime
	if db.dialect.name == mysqlScheme {
		var seconds int64
		if err := db.read.QueryRowContext(ctx, "SELECT @@wait_timeout").Scan(&seconds); err != nil {
			return err
		}
		// The server closes what has been idle for that long, just when it is asked.
		lifetime = min(lifetime, time.Duration(seconds)*time.Second*3/4)
	}
	db.read.SetConnMaxLifetime(lifetime)
	return nil
}

// connector makes connections to the server. Those that are not limited wait for an
// answer until their context ends.
func (db *DB) connector(limited bool) (driver.Connector, error) {
	if db.dialect.name == mysqlScheme {
		return db.target.mysqlConnector(db.timeout, limited)
	}
	return db.target.postgresConnector(db.timeout)
}

// alone runs f on a connection while no other instance runs anything in alone on the same
// database. With SQLite only f's transactions exclude others.
func (db *DB) alone(ctx context.Context, f func(context.Context, *sql.Conn) error) error {
	pool := db.write
	if db.dialect.server {
		// One of its own: what f does may take the server long.
		c, err := db.connector(false)
		if err != nil {
			return err
		}
		pool = sql.OpenDB(c)
		defer pool.Close() //nolint:errcheck // f's transactions have been committed or not
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // as above
	return f(ctx, conn)
}

func (db *DB) prepare(ctx context.Context) error {
	db.rows = &listQuery{db: db, head: selectRows, column: "id"}
	db.attributes = &listQuery{db: db, head: selectAttributes, column: "user_id"}
	db.members = &listQuery{db: db, head: selectMembers, column: "user_id"}
	db.active = &activeQuery{db: db}
	var err error
	db.address, err = db.statement(ctx, selectAddress)
	return err
}

// queryer is a SELECT that can be run: prepared, or as its text.
type queryer interface {
	QueryContext(ctx context.Context, args ...any) (*sql.Rows, error)
}

// statement makes a SELECT ready to be run many times.
func (db *DB) statement(ctx context.Context, text string) (queryer, error) {
	text = db.dialect.bind(text)
	if !db.dialect.prepared {
		return textQuery{pool: db.read, text: text}, nil
	}
	stmt, err := db.read.PrepareContext(ctx, text)
	if err != nil {
		return nil, err // and no queryer that is not nil
	}
	return stmt, nil
}

type textQuery struct {
	pool *sql.DB
	text string
}

// QueryContext runs the text.
func (q textQuery) QueryContext(ctx context.Context, args ...any) (*sql.Rows, error) {
	return q.pool.QueryContext(ctx, q.text, args...)
}

// Close ends what runs in the background and closes all connections. Calls in progress
// must have returned. An in-memory database is gone afterwards.
func (db *DB) Close() error {
	db.oldKeys.stop()
	db.oldVoids.stop()
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

// Ping reads from the database, and checks that the file of SQLite is still where it was.
func (db *DB) Ping(ctx context.Context) error {
	if db.file != nil {
		now, err := os.Stat(db.target.path)
		if err == nil && !os.SameFile(now, db.file) {
			err = errReplaced
		}
		if err != nil {
			return fmt.Errorf("ping database %s: %w", &db.target, err)
		}
	}
	var version int
	if err := db.read.QueryRowContext(ctx, selectVersion).Scan(&version); err != nil {
		return fmt.Errorf("ping database: %w", cause(ctx, err))
	}
	return nil
}
