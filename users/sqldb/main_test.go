package sqldb

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(crashEnv); path != "" {
		os.Exit(createUntilKilled(path))
	}
	goleak.VerifyTestMain(m)
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
