package sqldb

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"pinion/users"
)

// crashEnv turns the test binary into the process that TestKill kills. Its value is the
// database file.
const crashEnv = "PINION_TEST_CRASH_DATABASE"

// createUntilKilled prints each id once its user is stored.
func createUntilKilled(path string) int {
	db, err := Open(context.Background(), Options{DSN: scheme + path})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for i := 0; ; i++ {
		id, err := db.Create(context.Background(), crashUser(i))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(id)
	}
}

func crashUser(i int) users.NewUser {
	return users.NewUser{
		Name: "user " + strconv.Itoa(i), Email: "user@example.com", Address: "address " + strconv.Itoa(i),
		Attributes: []users.Attribute{{Key: "n", Value: strconv.Itoa(i)}},
	}
}

// What was reported as stored is there after kill -9, whole; what was not is there
// whole or not at all.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.db")
	ctx := context.Background()
	var ids []int64
	for range 3 { // each round starts on what the last one left
		ids = append(ids, killWriter(t, path)...)
	}

	db := openTest(t, Options{DSN: scheme + path})
	found, err := db.Users(ctx, ids)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != len(ids) {
		t.Errorf("%d users were reported as stored, %d are there", len(ids), len(found))
	}
	attributes, err := db.Attributes(ctx, ids)
	if err != nil || len(attributes) != len(ids) {
		t.Errorf("attributes of %d users, want %d: %v", len(attributes), len(ids), err)
	}
	for _, id := range ids {
		if address, err := db.Address(ctx, id); err != nil || address == "" {
			t.Errorf("address of %d: %q, %v", id, address, err)
		}
	}
	var report string
	if err := db.read.QueryRow("PRAGMA integrity_check").Scan(&report); err != nil || report != "ok" {
		t.Errorf("integrity check: %s, %v", report, err)
	}
}

// killWriter lets a process create users, kills it in the middle and returns the ids it
// printed.
func killWriter(t *testing.T, path string) (ids []int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		id, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if ids = append(ids, id); len(ids) == 100 {
			// It goes on creating until the signal arrives; what it printed until then
			// is still in the pipe.
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || len(ids) < 100 {
		t.Fatalf("writer ended by itself after %d users: %v", len(ids), err)
	}
	return ids
}
