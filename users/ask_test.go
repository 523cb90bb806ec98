package users_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pinion/users"
)

// Who set the limit that a call did not meet decides whether its source failed.
func TestWhoseDeadline(t *testing.T) {
	for name, tt := range map[string]struct {
		begin  func() (context.Context, context.CancelFunc)
		err    error
		result string
	}{
		"the server's": {
			func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(context.Background(), time.Second)
			},
			context.DeadlineExceeded, "error",
		},
		"the caller's": {
			func() (context.Context, context.CancelFunc) {
				return context.WithTimeoutCause(context.Background(), time.Second, users.ErrCallerDeadline)
			},
			context.DeadlineExceeded, "canceled",
		},
		"the caller left": {
			func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(context.Background())
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			},
			context.Canceled, "canceled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := openDB(t)
				sample(t, db, 1)
				g := newGate(db)
				g.onWrite = func(ctx context.Context, _ func() error) error {
					<-ctx.Done()
					return ctx.Err()
				}
				cfg := g.config()
				s := newService(t, cfg)
				ctx, cancel := tt.begin()
				defer cancel()
				if err := s.Delete(ctx, 1); !errors.Is(err, tt.err) || errors.Is(err, users.ErrUnavailable) {
					t.Errorf("got %v, want %v", err, tt.err)
				}
				for _, result := range []string{"ok", "error", "canceled"} {
					want := 0.0
					if result == tt.result {
						want = 1
					}
					if n := counter(cfg.Stats, "source_requests_total", "sql,"+result); float64(n) != want {
						t.Errorf("%v calls counted as %s, want %v", n, result, want)
					}
				}
			})
		})
	}
}

// A database that is gone does not make a warm cache useless.
func TestReady(t *testing.T) {
	db := openDB(t)
	sample(t, db, 1)
	s := newService(t, newGate(db).config())
	if err := s.Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(context.Background()); !errors.Is(err, users.ErrUnavailable) {
		t.Errorf("nothing can be served, and it is %v", err)
	}

	db = openDB(t)
	sample(t, db, 1)
	s = newService(t, newGate(db).config())
	mustLoad(t, s, 1)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(context.Background()); err != nil {
		t.Errorf("a user is cached, and it is %v", err)
	}
}
