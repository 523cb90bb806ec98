package sqldb

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"pinion/users"
)

func TestLockWait(t *testing.T) {
	for timeout, want := range map[time.Duration]int64{
		time.Millisecond:        1, // it cannot be less
		time.Second:             1,
		2 * time.Second:         1,
		2500 * time.Millisecond: 2,
		3 * time.Second:         2,
		DefaultTimeout:          3,
		time.Minute:             3,
	} {
		if got := lockWait(timeout); got != want {
			t.Errorf("lockWait(%v) = %d, want %d", timeout, got, want)
		}
	}
}

// A row that somebody else holds on to is an error that says so, on a connection that
// lives on.
func TestLockHeld(t *testing.T) {
	db := openTest(t, Options{DSN: servers.MariaDB(t).Database(), MaxConns: 2, Timeout: 2 * time.Second})
	id := mustCreate(t, db, users.NewUser{Name: "x"})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	other, err := openRaw(t, dsnOf(db)).BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback() //nolint:errcheck // nothing was changed
	if _, err := other.ExecContext(ctx, "SELECT id FROM users WHERE id = ? FOR UPDATE", id); err != nil {
		t.Fatal(err)
	}
	conn, err := db.write.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // it only goes back into the pool
	_, err = conn.ExecContext(ctx, "UPDATE users SET name = 'y' WHERE id = ?", id)
	var e *mysql.MySQLError
	if !errors.As(err, &e) || e.Number != mysqlLockWaitTimeout || mysqlVerdict(err) != conflict {
		t.Errorf("got %v", err)
	}
	if err := conn.PingContext(ctx); err != nil {
		t.Errorf("the connection is lost: %v", err)
	}
}

// What Postgres cannot store is refused at once: it is neither tried again nor taken for
// a lost connection.
func TestPostgresDataException(t *testing.T) {
	db := openTest(t, Options{DSN: servers.Postgres(t).Database(), MaxConns: 1})
	for name, text := range map[string]string{"NUL": "a\x00b", "not UTF-8": "a\xffb"} {
		tries := 0
		err := db.inTx(context.Background(), func(tx *tx) error {
			tries++
			_, err := tx.insert(context.Background(), insertUser, text, "", "", "", 0, 0, 0, 0)
			return err
		})
		var e *pgconn.PgError
		if !errors.As(err, &e) || !strings.HasPrefix(e.Code, "22") {
			t.Fatalf("%s: %v", name, err)
		}
		if got := postgresVerdict(err); got != refused || errors.Is(err, users.ErrUnknownOutcome) || tries != 1 {
			t.Errorf("%s: verdict %d after %d tries: %v", name, got, tries, err)
		}
	}
	mustCreate(t, db, users.NewUser{Name: "x"}) // the only connection is in order
}
