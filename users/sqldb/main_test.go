package sqldb

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"pinion/internal/testserver"
)

// servers are those of all tests that do not stop or change theirs.
var servers testserver.Shared

func TestMain(m *testing.M) {
	if path := os.Getenv(crashEnv); path != "" {
		os.Exit(createUntilKilled(path))
	}
	goleak.VerifyTestMain(testserver.Main{M: m, Servers: &servers})
}

// openTest opens a database that is closed with the test.
func openTest(t testing.TB, opts Options) *DB {
	t.Helper()
	db, err := Open(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func fileDSN(t testing.TB) string { return scheme + filepath.Join(t.TempDir(), "users.db") }

// onAll runs a test on an empty database of each kind.
func onAll(t *testing.T, opts Options, f func(t *testing.T, db *DB)) {
	t.Helper()
	for name, dsn := range map[string]func(testing.TB) string{
		"file":   fileDSN,
		"memory": func(testing.TB) string { return scheme + memoryName },
	} {
		t.Run(name, func(t *testing.T) {
			opts := opts
			opts.DSN = dsn(t)
			f(t, openTest(t, opts))
		})
	}
	onServers(t, opts, f)
}

// onServers runs a test on an empty database of each server.
func onServers(t *testing.T, opts Options, f func(t *testing.T, db *DB)) {
	t.Helper()
	for name, server := range map[string]func(testing.TB) *testserver.Server{
		"mariadb": servers.MariaDB, "postgres": servers.Postgres,
	} {
		t.Run(name, func(t *testing.T) {
			opts := opts
			opts.DSN = server(t).Database()
			f(t, openTest(t, opts))
		})
	}
}
