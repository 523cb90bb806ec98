package sqldb

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
)

// dialect is all that differs between the databases. Every other text is the same for
// all of them, with ? for a parameter.
type dialect struct {
	name string // also the folder of its migrations

	server   bool // connections go to another process, which may hang or die
	numbered bool // parameters are $1, $2, ...
	prepared bool // statements are worth preparing by hand; else the driver knows best
	arrays   bool // a list of ids is one parameter
	written  bool // a list of ids is part of the text, as the driver would put it there
	returns  bool // an INSERT has to be asked for the id that it gave out

	begin         string // of a transaction that writes
	forUpdate     string // ends a SELECT whose rows must not change until the commit
	greatest      string // the function for the larger of two numbers
	upsertAddress string
	claimKey      string // stores a key of a create, unless it is there
	deleteKeys    string // removes the oldest keys of before a time, up to a number of them
	everUsed      string // has there ever been a user, except in a Fill that was cut off?

	createMigrations string
	// stepwise: each statement that changes the schema commits by itself.
	stepwise bool
	// lock waits until the connection is the only one of all instances that has it. It
	// ends with the connection. nil: begin excludes others already.
	lock func(ctx context.Context, conn *sql.Conn) error
	// reserve keeps the ids 1 to n from being given out, at once and for good, whatever
	// comes of the transaction. nil: begin excludes others already.
	reserve func(n int) string

	// analyze brings the planner's view of the tables up to date; empty: not needed.
	analyze string

	// verdict says what an error means.
	verdict func(err error) verdict
}

// verdict is what an error of a statement means for its transaction.
type verdict uint8

const (
	// lost: the database did not say. If the statement was a COMMIT, it may be done.
	lost verdict = iota
	// refused: the database said no, and the transaction has not been stored.
	refused
	// conflict: refused because of other transactions. The same may succeed later.
	conflict
)

// bind writes the parameters of a text in the way of the database.
func (d *dialect) bind(text string) string {
	if !d.numbered || !strings.Contains(text, "?") {
		return text
	}
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(text, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
		text = after
	}
}

// inList is the condition that column is one of n ids, and the parameters that it takes.
// n is a power of two, unless the list is one parameter.
func (d *dialect) inList(column string, n int) string {
	if d.arrays {
		return column + " = ANY(?)"
	}
	return column + " IN (?" + strings.Repeat(",?", n-1) + ")"
}

// listArgs are the parameters of inList for a list of up to n ids. The rest of a list
// repeats its last id, which finds nothing twice.
func (d *dialect) listArgs(ids []int64, n int) []any {
	if d.arrays {
		return []any{ids}
	}
	args := make([]any, n)
	for i := range args {
		args[i] = ids[min(i, len(ids)-1)]
	}
	return args
}

const (
	upsertAddress = `INSERT INTO addresses (user_id, address) VALUES (?, ?)
ON CONFLICT (user_id) DO UPDATE SET address = excluded.address`
	claimKey = `INSERT INTO idempotency_keys (digest, content, user_id, created_at) VALUES (?, ?, 0, ?)
ON CONFLICT (digest) DO NOTHING`
	deleteKeys = `DELETE FROM idempotency_keys WHERE digest IN (
	SELECT digest FROM idempotency_keys WHERE created_at < ? ORDER BY created_at LIMIT ?)`
)

func sqliteDialect() *dialect {
	return &dialect{
		name:          "sqlite",
		prepared:      true,
		begin:         "BEGIN IMMEDIATE",
		greatest:      "max",
		upsertAddress: upsertAddress,
		claimKey:      claimKey,
		deleteKeys:    deleteKeys,
		everUsed: `SELECT EXISTS (SELECT 1 FROM users)
OR EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'users' AND seq > 0)`,
		createMigrations: `CREATE TABLE IF NOT EXISTS schema_migrations (
	version    INTEGER PRIMARY KEY,
	name       TEXT    NOT NULL,
	applied_at INTEGER NOT NULL
)`,
		verdict: sqliteVerdict,
	}
}

func mysqlDialect() *dialect {
	return &dialect{
		name:      "mysql",
		server:    true,
		written:   true,
		begin:     "START TRANSACTION",
		forUpdate: " FOR UPDATE",
		greatest:  "greatest",
		upsertAddress: `INSERT INTO addresses (user_id, address) VALUES (?, ?)
ON DUPLICATE KEY UPDATE address = VALUES(address)`,
		// IGNORE would only share the lock on a row that is there. Two that share it
		// and both want to write are a deadlock.
		claimKey: `INSERT INTO idempotency_keys (digest, content, user_id, created_at) VALUES (?, ?, 0, ?)
ON DUPLICATE KEY UPDATE digest = digest`,
		// With the condition of the others it reads, and locks, each key of the table.
		deleteKeys: `DELETE FROM idempotency_keys WHERE created_at < ? ORDER BY created_at LIMIT ?`,
		everUsed: `SELECT EXISTS (SELECT 1 FROM users)
OR NOT EXISTS (SELECT 1 FROM schema_migrations WHERE version = 0) AND EXISTS (
	SELECT 1 FROM information_schema.tables
	WHERE table_schema = DATABASE() AND table_name = 'users' AND auto_increment > 1)`,
		createMigrations: `CREATE TABLE IF NOT EXISTS schema_migrations (
	version    INT          NOT NULL PRIMARY KEY,
	name       VARCHAR(255) NOT NULL,
	applied_at BIGINT       NOT NULL, -- 0: not all of it yet
	step       INT          NOT NULL DEFAULT 0 -- the last statement that was begun
) ENGINE = InnoDB`,
		stepwise: true,
		lock:     lockMySQL,
		reserve:  func(n int) string { return "ALTER TABLE users AUTO_INCREMENT = " + strconv.Itoa(n+1) },
		verdict:  mysqlVerdict,
	}
}

func postgresDialect() *dialect {
	return &dialect{
		name:          "postgres",
		server:        true,
		numbered:      true,
		arrays:        true,
		returns:       true,
		begin:         "BEGIN ISOLATION LEVEL READ COMMITTED",
		forUpdate:     " FOR UPDATE",
		greatest:      "greatest",
		upsertAddress: upsertAddress,
		claimKey:      claimKey,
		deleteKeys:    deleteKeys,
		everUsed: `SELECT EXISTS (SELECT 1 FROM users)
OR NOT EXISTS (SELECT 1 FROM schema_migrations WHERE version = 0) AND (SELECT is_called FROM users_id_seq)`,
		createMigrations: `CREATE TABLE IF NOT EXISTS schema_migrations (
	version    INTEGER PRIMARY KEY,
	name       TEXT    NOT NULL,
	applied_at BIGINT  NOT NULL
)`,
		lock:    lockPostgres,
		reserve: func(n int) string { return "SELECT setval('users_id_seq', " + strconv.Itoa(n) + ")" },
		// Without it the planner takes the tables for empty until autovacuum comes by.
		analyze: "VACUUM (ANALYZE) users, addresses, user_attributes, members",
		verdict: postgresVerdict,
	}
}
