package sqldb

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"
)

// addKeys stores n keys, a second apart from each other, the first at start.
func addKeys(t *testing.T, db *DB, n int, start time.Time) {
	t.Helper()
	for i := 0; i < n; {
		rows := min(n-i, maxList)
		args := make([]any, 0, 4*rows)
		for range rows {
			digest := binary.BigEndian.AppendUint64(make([]byte, 24), uint64(i))
			args = append(args, digest, digest, 1, start.Add(time.Duration(i)*time.Second).UnixMicro())
			i++
		}
		text := "INSERT INTO idempotency_keys (digest, content, user_id, created_at) VALUES " + tuples(rows, 4)
		if _, err := db.write.Exec(db.dialect.bind(text), args...); err != nil {
			t.Fatal(err)
		}
	}
}

// MariaDB finds expired keys by their index, and locks no others.
func TestDeleteKeysPlan(t *testing.T) {
	db := openTest(t, Options{DSN: servers.MariaDB(t).Database(), MaxConns: 1})
	addKeys(t, db, 3000, instant())
	if _, err := db.write.Exec("ANALYZE TABLE idempotency_keys"); err != nil {
		t.Fatal(err)
	}
	for name, expired := range map[string]int{"none": 0, "a few": 20, "half": 1500} {
		before := instant().Add(time.Duration(expired) * time.Second).UnixMicro()
		got := explain(t, db, db.dialect.deleteKeys, before, cleanAtMost)
		if strings.Count(got, "\n") != 1 || !strings.Contains(got, "type=range;") ||
			!strings.Contains(got, "key=idempotency_keys_by_age;") || strings.Contains(got, "filesort") {
			t.Errorf("%s expired:\n%s", name, got)
		}
	}
}

// All that has expired goes, however much it is, and nothing else.
func TestCleanKeys(t *testing.T) {
	onAll(t, Options{}, func(t *testing.T, db *DB) {
		const n, old = cleanAtMost + 300, cleanAtMost + 200
		start := instant().Add(-keyLifetime - keyGrace - old*time.Second)
		addKeys(t, db, n, start)
		db.cleanKeys(instant().UnixMicro())
		db.oldKeys.running.Wait()
		if left := countRows(t, db, "idempotency_keys"); left != n-old {
			t.Errorf("%d keys left, want %d", left, n-old)
		}
	})
}

// A create does not wait for the removal of others' keys, which one of them may hold up.
func TestCleanHoldsNobodyUp(t *testing.T) {
	onServers(t, Options{}, func(t *testing.T, db *DB) {
		addKeys(t, db, 1, time.UnixMicro(1))
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		other, err := openRaw(t, dsnOf(db)).BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Rollback() //nolint:errcheck // nothing was changed
		if _, err := other.ExecContext(ctx, "SELECT digest FROM idempotency_keys FOR UPDATE"); err != nil {
			t.Fatal(err)
		}
		mustCreate(t, db, keyed("k"))
		db.oldKeys.mu.Lock()
		defer db.oldKeys.mu.Unlock()
		if db.oldKeys.cancel == nil {
			t.Error("the removal is over before the create")
		}
	})
}

func TestCleaner(t *testing.T) {
	var c cleaner
	const now = int64(time.Hour / time.Microsecond)
	later := now + cleanEvery.Microseconds()
	started := make(chan struct{})
	wait := func(ctx context.Context) (int64, error) {
		close(started)
		<-ctx.Done()
		return 0, ctx.Err()
	}
	never := func(context.Context) (int64, error) {
		t.Error("it runs")
		return 0, nil
	}
	counts := []int64{cleanAtMost, cleanAtMost, cleanAtMost - 1}
	c.start(now, func(context.Context) (n int64, err error) {
		n, counts = counts[0], counts[1:]
		return n, nil
	})
	c.running.Wait()
	if len(counts) != 0 {
		t.Errorf("it ended %d rounds early", len(counts))
	}
	c.start(later-1, never) // too soon
	c.start(later, wait)
	<-started
	c.start(later+cleanEvery.Microseconds(), never) // while one runs
	c.stop()
	c.start(later+2*cleanEvery.Microseconds(), never)
	c.stop()
}

// An error ends a removal: the next one may fare better.
func TestCleanerFails(t *testing.T) {
	var c cleaner
	tries := 0
	c.start(1<<50, func(context.Context) (int64, error) {
		tries++
		return cleanAtMost, errors.New("no")
	})
	c.stop()
	if tries != 1 {
		t.Errorf("%d tries", tries)
	}
}

// Close ends a removal that waits.
func TestCloseEndsClean(t *testing.T) {
	db, err := Open(context.Background(), Options{DSN: scheme + memoryName})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.write.Conn(context.Background()) // the only one
	if err != nil {
		t.Fatal(err)
	}
	db.cleanKeys(instant().UnixMicro())
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	_ = conn.Close() // the pool is gone
}
