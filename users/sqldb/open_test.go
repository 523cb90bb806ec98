package sqldb

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pinion/users"
)

func TestOpenSettings(t *testing.T) {
	db := openTest(t, Options{DSN: fileDSN(t)})
	for _, tt := range []struct {
		pool         *sql.DB
		pragma, want string
	}{
		{db.write, "journal_mode", "wal"},
		{db.write, "synchronous", "2"}, // FULL
		{db.write, "foreign_keys", "1"},
		{db.write, "busy_timeout", "5000"},
		{db.write, "cache_size", "-8192"},
		{db.write, "temp_store", "2"}, // MEMORY
		{db.write, "journal_size_limit", "67108864"},
		{db.read, "journal_mode", "wal"},
		{db.read, "busy_timeout", "5000"},
		{db.read, "cache_size", "-8192"},
	} {
		var got string
		if err := tt.pool.QueryRow("PRAGMA " + tt.pragma).Scan(&got); err != nil || got != tt.want {
			t.Errorf("%s = %q, %v; want %q", tt.pragma, got, err, tt.want)
		}
	}
	if _, err := db.read.Exec("DELETE FROM users"); err == nil {
		t.Error("a reading connection could write")
	}
	if n := db.write.Stats().MaxOpenConnections; n != 1 {
		t.Errorf("%d writing connections, want 1", n)
	}
}

// The name of a file is not a URL.
func TestOpenOddFileNames(t *testing.T) {
	for _, name := range []string{"a b.db", "100%.db", "what?mode=memory.db", "ha#sh.db", "é%41.db", "a&b=c.db"} {
		path := filepath.Join(t.TempDir(), name)
		openTest(t, Options{DSN: scheme + path})
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenAgain(t *testing.T) {
	dsn := fileDSN(t)
	ctx := context.Background()
	db, err := Open(ctx, Options{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	id, err := db.Create(ctx, users.NewUser{Name: "Ada", Email: "ada@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openTest(t, Options{DSN: dsn})
	if got, err := db.Users(ctx, []int64{id}); err != nil || len(got) != 1 {
		t.Errorf("after reopening: %v, %v", got, err)
	}
	var n int
	if err := db.read.QueryRow("SELECT count(*) FROM schema_migrations").Scan(&n); err != nil || n != 2 {
		t.Errorf("%d migrations recorded, %v; want 2", n, err)
	}
}

func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.db")
	writeFile(t, garbage, bytes.Repeat([]byte("this is no database. "), 1000))

	for _, tt := range []struct{ name, path, want string }{
		{"no such directory", filepath.Join(dir, "nowhere", "users.db"), "unable to open database file"},
		{"a directory", dir, "unable to open database file"},
		{"no database", garbage, "file is not a database"},
		{"cut in the first page", damaged(t, func(b []byte) []byte { return b[:1000] }), "disk image is malformed"},
		{"cut in the middle", damaged(t, func(b []byte) []byte { return b[:len(b)/2] }), "disk image is malformed"},
		{"schema overwritten", damaged(t, func(b []byte) []byte {
			copy(b[100:4096], bytes.Repeat([]byte{0xff}, 4096))
			return b
		}), "disk image is malformed"},
		{"another program's", foreign(t, "CREATE TABLE users (x)"), "migration 0001_users.sql: SQL logic error: table users already exists"},
		{"newer", foreign(t, sqliteDialect().createMigrations+"; INSERT INTO schema_migrations VALUES (99, 'x', 1)"), errNewerSchema.Error()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db, err := Open(context.Background(), Options{DSN: scheme + tt.path})
			if err == nil {
				t.Fatal(db.Close())
			}
			if errors.Is(err, ErrUnsupported) {
				t.Errorf("%v matches ErrUnsupported", err)
			}
			text := err.Error()
			if !strings.Contains(text, tt.path) || !strings.Contains(text, tt.want) || strings.Contains(text, "\n") {
				t.Errorf("got %q, want one line with %q and %q", text, tt.path, tt.want)
			}
		})
	}
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// damaged returns the path of a filled database whose file went through f.
func damaged(t *testing.T, f func([]byte) []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users.db")
	db, err := Open(context.Background(), Options{DSN: scheme + path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Fill(context.Background(), 200, nil); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, f(data))
	return path
}

// foreign returns the path of a database with tables of somebody else's.
func foreign(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "foreign.db")
	pool, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(text); err != nil {
		t.Fatal(err)
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// writer returns a transaction that holds the lock for writing, as of another process.
func writer(t *testing.T, path string) *sql.Tx {
	t.Helper()
	other, err := sql.Open("sqlite", path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() }) // nothing was written
	tx, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// A lock of another process ends in an error that names it, not in an endless wait.
func TestLocked(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "users.db")
	opts := Options{DSN: scheme + path, BusyTimeout: 50 * time.Millisecond}
	db := openTest(t, opts)

	tx := writer(t, path)
	user := users.NewUser{Name: "Ada", Email: "ada@example.com"}
	if _, err := db.Create(ctx, user); err == nil || !strings.Contains(err.Error(), "database is locked") {
		t.Errorf("Create beside another writer: %v", err)
	}
	if _, err := db.Users(ctx, []int64{1}); err != nil {
		t.Errorf("a reader waits for a writer: %v", err)
	}
	if second, err := Open(ctx, opts); err == nil {
		t.Error("opened although it cannot write", second.Close())
	} else if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "database is locked") {
		t.Errorf("Open beside another writer: %v", err)
	}

	// A caller that cannot wait as long gets its own error.
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := db.Create(short, user); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Create past its deadline: %v", err)
	}

	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Create(ctx, user); err != nil {
		t.Errorf("Create after the lock is gone: %v", err)
	}
}

// An instance that makes a new file while another is making it waits for it.
func TestOpenWhileAnotherMakesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.db")
	tx := writer(t, path)

	opts := Options{DSN: scheme + path, BusyTimeout: 50 * time.Millisecond}
	if db, err := Open(context.Background(), opts); err == nil {
		t.Error("opened although it cannot write", db.Close())
	} else if !strings.Contains(err.Error(), "database is locked") {
		t.Error(err)
	}
	opts.BusyTimeout = time.Minute
	short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if db, err := Open(short, opts); err == nil {
		t.Error("opened although it cannot write", db.Close())
	} else if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Open past its deadline: %v", err)
	}

	time.AfterFunc(100*time.Millisecond, func() {
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	})
	openTest(t, opts)
}

func TestReadMigrations(t *testing.T) {
	for _, d := range []*dialect{sqliteDialect(), mysqlDialect(), postgresDialect()} {
		steps, err := readMigrations(migrationFiles, d.name)
		if err != nil || len(steps) != 2 {
			t.Fatal(d.name, steps, err)
		}
		for _, m := range steps {
			for _, s := range m.statements {
				if !strings.Contains(s, "CREATE ") || strings.HasSuffix(s, ";") {
					t.Errorf("%s: migration %s: odd statement %q", d.name, m.name, s)
				}
			}
		}
	}
	for _, names := range [][]string{{"0002_b.sql"}, {"0001_a.sql", "0003_c.sql"}, {"first.sql"}, {"0001_a.sql", "0001_b.sql"}} {
		files := fstest.MapFS{}
		for _, name := range names {
			files["migrations/x/"+name] = &fstest.MapFile{}
		}
		if steps, err := readMigrations(files, "x"); err == nil {
			t.Errorf("%v: got %v, want an error", names, steps)
		}
	}
}

func TestSplitStatements(t *testing.T) {
	got := splitStatements("-- a; b\nCREATE x (\n\t';'\n);\n\nDROP y\n;\nlast;")
	want := []string{"-- a; b\nCREATE x (\n\t';'\n)", "DROP y", "last"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
