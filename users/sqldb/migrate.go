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
	"time"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

const (
	createMigrations = `CREATE TABLE IF NOT EXISTS schema_migrations (
	version    INTEGER PRIMARY KEY,
	name       TEXT    NOT NULL,
	applied_at INTEGER NOT NULL
)`
	selectVersion = `SELECT coalesce(max(version), 0) FROM schema_migrations`
	// rewriteMigrations changes nothing, but has to be able to.
	rewriteMigrations = `UPDATE schema_migrations SET applied_at = applied_at`
	insertMigration   = `INSERT INTO schema_migrations (version, name, applied_at) VALUES (?, ?, ?)`
)

// errNewerSchema keeps an old program from writing to tables it does not understand.
var errNewerSchema = errors.New("the database was made by a newer version of this program")

// migration is one step of the schema: "0001_users.sql" is version 1.
type migration struct {
	version int
	name    string
	text    string
}

// readMigrations returns the steps in order; their numbers run from 1 without a gap.
func readMigrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql") // sorted
	if err != nil {
		return nil, err
	}
	steps := make([]migration, 0, len(names))
	for i, path := range names {
		name := strings.TrimPrefix(path, "migrations/")
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("migration %s: want number %d", name, i+1)
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, err
		}
		steps = append(steps, migration{version: version, name: name, text: string(text)})
	}
	return steps, nil
}

// migrate applies the steps that the database lacks, all of them or none. It writes
// even when it lacks none: a database that cannot be written must not be served, and
// SQLite lets a transaction that only might write begin on one.
func migrate(ctx context.Context, pool *sql.DB, now func() time.Time) error {
	steps, err := readMigrations(migrationFiles)
	if err != nil {
		return err
	}
	return inTx(ctx, pool, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, createMigrations); err != nil {
			return err
		}
		var version int
		if err := tx.QueryRowContext(ctx, selectVersion).Scan(&version); err != nil {
			return err
		}
		if version > len(steps) {
			return fmt.Errorf("%w: schema %d, known are 1 to %d", errNewerSchema, version, len(steps))
		}
		for _, m := range steps[version:] {
			if _, err := tx.ExecContext(ctx, m.text); err != nil {
				return fmt.Errorf("migration %s: %w", m.name, err)
			}
			if _, err := tx.ExecContext(ctx, insertMigration, m.version, m.name, now().UnixMicro()); err != nil {
				return fmt.Errorf("migration %s: %w", m.name, err)
			}
		}
		_, err := tx.ExecContext(ctx, rewriteMigrations)
		return err
	})
}

// inTx commits what f does, or nothing of it. When ctx ends, the transaction is rolled
// back underneath f, whose own error then only tells of the pieces.
func inTx(ctx context.Context, pool *sql.DB, f func(*sql.Tx) error) error {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	// After a commit this does nothing; after a panic it frees the writer.
	defer tx.Rollback() //nolint:errcheck // the error of f or of Commit says more
	if err = f(tx); err == nil {
		err = tx.Commit()
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
