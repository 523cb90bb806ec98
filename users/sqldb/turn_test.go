package sqldb

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pinion/users"
)

// overtaken has two users of one file write as fast as they can, and returns how many
// writes at most were done by others while one waited.
func overtaken(t *testing.T, peers bool) int64 {
	t.Helper()
	const writers, writes = 8, 30
	dsn := fileDSN(t)
	var (
		wg          sync.WaitGroup
		count, most atomic.Int64
	)
	for range 2 {
		db := openTest(t, Options{DSN: dsn, Peers: peers, BusyTimeout: time.Minute})
		for range writers {
			wg.Go(func() {
				for i := range writes {
					before := count.Load()
					if _, err := db.Create(context.Background(), crashUser(i)); err != nil {
						t.Error(err)
						return
					}
					n := count.Add(1) - before
					for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
					}
				}
			})
		}
	}
	wg.Wait()
	return most.Load()
}

// TestTurns: with sixteen writers, each has its turn after about fifteen others.
func TestTurns(t *testing.T) {
	if n := overtaken(t, true); n > 50 {
		t.Errorf("a write was overtaken by %d others", n)
	} else {
		t.Logf("at most %d writes were done while one waited; without turns %d", n, overtaken(t, false))
	}
}

// TestTurnGivenUp: who does not wait to the end leaves no lock behind.
func TestTurnGivenUp(t *testing.T) {
	turn := newTurn(filepath.Join(t.TempDir(), "users.db"))
	done, err := turn.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	for range 3 {
		if _, err := turn.take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	}
	done()
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if done, err = turn.take(ctx); err != nil {
		t.Fatal(err)
	}
	done()
}

// TestTurnInTime: a write that cannot have its turn in time has not been done.
func TestTurnInTime(t *testing.T) {
	db := openTest(t, Options{DSN: fileDSN(t), Peers: true})
	done, err := db.turn.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = db.Create(ctx, crashUser(1))
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, users.ErrUnknownOutcome) {
		t.Errorf("got %v", err)
	}
	done()
	if _, err := db.Create(t.Context(), crashUser(2)); err != nil {
		t.Error(err)
	}
}
