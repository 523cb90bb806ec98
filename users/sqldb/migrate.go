package sqldb

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

//go:embed migrations/*/*.sql
var migrationFiles embed.FS

const (
	// A migration that is not done yet has no time.
	selectVersion = `SELECT coalesce(max(version), 0) FROM schema_migrations WHERE applied_at <> 0`
	// rewriteMigrations changes nothing, but has to be able to.
	rewriteMigrations = `UPDATE schema_migrations SET applied_at = applied_at`
	insertMigration   = `INSERT INTO schema_migrations (version, name, applied_at) VALUES (?, ?, ?)`
	selectStep        = `SELECT step FROM schema_migrations WHERE version = ?`
	updateStep        = `UPDATE schema_migrations SET step = ? WHERE version = ?`
	finishMigration   = `UPDATE schema_migrations SET applied_at = ? WHERE version = ?`
)

// errNewerSchema keeps an old program from writing to tables it does not understand.
var errNewerSchema = errors.New("the database was made by a newer version of this program")

// migration is one step of the schema: "0001_users.sql" is version 1.
type migration struct {
	version    int
	name       string
	statements []string
}

// readMigrations returns the steps of a database in order; their numbers run from 1
// without a gap.
func readMigrations(files fs.FS, dialect string) ([]migration, error) {
	folder := "migrations/" + dialect + "/"
	names, err := fs.Glob(files, folder+"*.sql") // sorted
	if err != nil {
		return nil, err
	}
	steps := make([]migration, 0, len(names))
	for i, path := range names {
		name := strings.TrimPrefix(path, folder)
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("migration %s: want number %d", name, i+1)
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, err
		}
		steps = append(steps, migration{version: version, name: name, statements: splitStatements(string(text))})
	}
	return steps, nil
}

// splitStatements cuts at every semicolon that ends a line: not every driver takes several
// statements at once.
func splitStatements(text string) (statements []string) {
	for s := range strings.SplitSeq(strings.TrimSpace(text)+"\n", ";\n") {
		if s = strings.TrimSpace(s); s != "" {
			statements = append(statements, s)
		}
	}
	return statements
}

// migrate applies the steps that the database lacks.
func (db *DB) migrate(ctx context.Context, conn *sql.Conn) error {
	steps, err := readMigrations(migrationFiles, db.dialect.name)
	if err != nil {
		return err
	}
	if !db.dialect.server {
		// It writes even when the database lacks nothing: one that cannot be written must
		// not be served, and SQLite lets a transaction that only might write begin on one.
		return db.runTx(ctx, conn, func(t *tx) error {
			if err := t.migrate(ctx, db, steps); err != nil {
				return err
			}
			_, err := t.exec(ctx, rewriteMigrations)
			return err
		})
	}
	// A server that is up to date is only read: one that cannot be written now may be
	// able to again, without anybody asking us. An error comes back below.
	if v, err := version(ctx, conn); err == nil && v == len(steps) {
		return nil
	}
	if err := db.dialect.lock(ctx, conn); err != nil {
		return err
	}
	if db.dialect.stepwise {
		return db.migrateStepwise(ctx, conn, steps)
	}
	return db.runTx(ctx, conn, func(t *tx) error { return t.migrate(ctx, db, steps) })
}

func version(ctx context.Context, conn *sql.Conn) (v int, err error) {
	err = conn.QueryRowContext(ctx, selectVersion).Scan(&v)
	return v, err
}

// missing returns the steps that the database lacks. Their table must be there.
func missing(ctx context.Context, conn *sql.Conn, steps []migration) ([]migration, error) {
	v, err := version(ctx, conn)
	if err != nil {
		return nil, err
	}
	if v > len(steps) {
		return nil, fmt.Errorf("%w: schema %d, known are 1 to %d", errNewerSchema, v, len(steps))
	}
	return steps[v:], nil
}

// migrate applies all steps that the database lacks, or none.
func (t *tx) migrate(ctx context.Context, db *DB, steps []migration) error {
	if _, err := t.exec(ctx, db.dialect.createMigrations); err != nil {
		return err
	}
	steps, err := missing(ctx, t.conn, steps)
	if err != nil {
		return err
	}
	for _, m := range steps {
		for _, s := range m.statements {
			if _, err := t.conn.ExecContext(ctx, s); err != nil {
				return fmt.Errorf("migration %s: %w", m.name, err)
			}
		}
		if _, err := t.exec(ctx, insertMigration, m.version, m.name, db.now().UnixMicro()); err != nil {
			return fmt.Errorf("migration %s: %w", m.name, err)
		}
	}
	return nil
}

// migrateStepwise applies the steps that the database lacks where no transaction can hold
// them together. Which statement comes next is written down before it runs, so that a
// migration that was cut off goes on where it was.
func (db *DB) migrateStepwise(ctx context.Context, conn *sql.Conn, steps []migration) error {
	if _, err := conn.ExecContext(ctx, db.dialect.createMigrations); err != nil {
		return err
	}
	steps, err := missing(ctx, conn, steps)
	if err != nil {
		return err
	}
	for _, m := range steps {
		if err := m.resume(ctx, conn); err != nil {
			return fmt.Errorf("migration %s: %w", m.name, err)
		}
		if _, err := conn.ExecContext(ctx, finishMigration, db.now().UnixMicro(), m.version); err != nil {
			return fmt.Errorf("migration %s: %w", m.name, err)
		}
	}
	return nil
}

// resume runs the statements from the one on that was begun last. Of that one nobody knows
// whether it ran: if it says that its work is done already, then it did. No other may say
// so: the tables would be somebody else's.
func (m *migration) resume(ctx context.Context, conn *sql.Conn) error {
	begun := 0
	err := conn.QueryRowContext(ctx, selectStep, m.version).Scan(&begun)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = conn.ExecContext(ctx, insertMigration, m.version, m.name, 0)
	}
	if err != nil {
		return err
	}
	for n := max(begun, 1); n <= len(m.statements); n++ {
		if _, err := conn.ExecContext(ctx, updateStep, n, m.version); err != nil {
			return err
		}
		_, err := conn.ExecContext(ctx, m.statements[n-1])
		if err == nil || n == begun && mysqlDone(err) {
			continue
		}
		if mysqlVerdict(err) != lost {
			// It did not run.
			_, undo := conn.ExecContext(ctx, updateStep, n-1, m.version)
			err = errors.Join(err, undo)
		}
		return err
	}
	return nil
}
