package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"

	"pinion/users"
)

// A caller that leaves between two statements leaves nothing behind, neither in the
// database nor on the connection.
func TestLeaveBetweenStatements(t *testing.T) {
	onAll(t, Options{MaxConns: 1}, func(t *testing.T, db *DB) {
		ctx, cancel := context.WithCancel(context.Background())
		err := db.inTx(ctx, func(t *tx) error {
			defer cancel()
			_, err := t.exec(ctx, insertVoid, 1, db.now().UnixMicro())
			return err
		})
		if !errors.Is(err, context.Canceled) || errors.Is(err, users.ErrUnknownOutcome) {
			t.Errorf("got %v", err)
		}
		mustCreate(t, db, users.NewUser{Name: "x"}) // would commit what is left
		if got, err := db.Voids(context.Background(), 1); err != nil || len(got) != 0 {
			t.Errorf("left behind: %v, %v", got, err)
		}
	})
}

// A panic rolls back and frees the connection.
func TestPanicInTx(t *testing.T) {
	onAll(t, Options{MaxConns: 1}, func(t *testing.T, db *DB) {
		ctx := context.Background()
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is gone")
				}
			}()
			_ = db.inTx(ctx, func(tx *tx) error {
				if _, err := tx.exec(ctx, insertVoid, 1, db.now().UnixMicro()); err != nil {
					t.Error(err)
				}
				panic("oops")
			})
		}()
		mustCreate(t, db, users.NewUser{Name: "x"})
		if got, err := db.Voids(ctx, 1); err != nil || len(got) != 0 {
			t.Errorf("left behind: %v, %v", got, err)
		}
	})
}

// A commit that was not even sent has not been done, and the transaction runs again.
func TestCommitNotSent(t *testing.T) {
	onServers(t, Options{}, func(t *testing.T, db *DB) {
		ctx := context.Background()
		for _, broken := range []int{1, maxTries} {
			runs := 0
			err := db.inTx(ctx, func(tx *tx) error {
				if _, err := tx.exec(ctx, insertVoid, 1, db.now().UnixMicro()); err != nil {
					return err
				}
				if runs++; runs > broken {
					return nil
				}
				return tx.conn.Raw(func(c any) error { return c.(driver.Conn).Close() })
			})
			got, readErr := db.Voids(ctx, 10)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if broken < maxTries && (err != nil || runs != broken+1 || len(got) != 1) {
				t.Errorf("%d lost connections: %d runs, %v stored, %v", broken, runs, got, err)
			}
			if broken == maxTries && (err == nil || errors.Is(err, users.ErrUnknownOutcome) || runs != maxTries || len(got) != 1) {
				t.Errorf("%d lost connections: %d runs, %v stored, %v", broken, runs, got, err)
			}
		}
	})
}

// A row that an update finds counts, even if it is the same afterwards.
func TestFoundRows(t *testing.T) {
	onAll(t, Options{}, func(t *testing.T, db *DB) {
		ctx := context.Background()
		id := mustCreate(t, db, users.NewUser{Name: "x"})
		err := db.inTx(ctx, func(t *tx) error { return t.execOne(ctx, "UPDATE users SET name = 'x' WHERE id = ?", id) })
		if err != nil {
			t.Error(err)
		}
	})
}

func TestVerdicts(t *testing.T) {
	for name, d := range map[string]*dialect{"mysql": mysqlDialect(), "postgres": postgresDialect()} {
		for _, err := range []error{driver.ErrBadConn, context.Canceled, context.DeadlineExceeded, errors.New("unexpected EOF")} {
			if got := d.verdict(err); got != lost {
				t.Errorf("%s: verdict on %v is %d", name, err, got)
			}
		}
	}
}

func TestBind(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"SELECT 1", "SELECT 1"},
		{"a ? b ?", "a $1 b $2"},
		{"?", "$1"},
		{tuples(2, 6), "($1,$2,$3,$4,$5,$6),($7,$8,$9,$10,$11,$12)"},
	} {
		if got := postgresDialect().bind(tt.text); got != tt.want {
			t.Errorf("bind(%q) = %q, want %q", tt.text, got, tt.want)
		}
		if got := mysqlDialect().bind(tt.text); got != tt.text {
			t.Errorf("MySQL's bind(%q) = %q", tt.text, got)
		}
	}
}
