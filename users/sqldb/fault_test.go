package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pinion/internal/testserver"
	"pinion/users"
)

// The connection is lost while a write commits: nobody can say what came of it, and
// nobody does. The user is there whole or not at all, and a retry under the same key
// makes it exactly one.
func TestLostInCommit(t *testing.T) {
	for name, get := range map[string]func(testing.TB) *testserver.Server{"mariadb": servers.MariaDB, "postgres": servers.Postgres} {
		for _, tt := range []struct {
			name   string
			toxics []string
			stored int
		}{
			{"commit lost", []string{`{"type":"lose_commit","stream":"upstream"}`}, 0},
			{"answer lost", []string{
				`{"type":"lose_commit","stream":"upstream","attributes":{"forward":true}}`,
				`{"type":"lose_answer","stream":"downstream"}`,
			}, 1},
			{"no answer", []string{
				`{"type":"lose_commit","stream":"upstream","attributes":{"forward":true}}`,
				`{"type":"lose_answer","stream":"downstream","attributes":{"silent":true}}`,
			}, 1},
		} {
			t.Run(name+"/"+tt.name, func(t *testing.T) {
				server := get(t)
				straight := server.Database()
				dsn, proxy := proxied(t, server, straight)
				plain := openTest(t, Options{DSN: straight})
				db := openTest(t, Options{DSN: dsn, Timeout: 5 * time.Second})
				victim := mustCreate(t, db, users.NewUser{Name: "before", Address: "there"})

				commitSent.Store(false)
				for _, toxic := range tt.toxics {
					addToxic(t, proxy, toxic)
				}
				start := time.Now()
				id, err := db.Create(untilCommit(t), keyed("k"))
				if !errors.Is(err, users.ErrUnknownOutcome) || id == 0 {
					t.Fatalf("Create = %d, %v", id, err)
				}
				if took := time.Since(start); took > commitTimeout {
					t.Errorf("it took %v", took)
				}
				db.oldKeys.running.Wait() // it commits too
				if tt.name == "no answer" && !errors.Is(err, context.Canceled) {
					t.Errorf("Create of a caller that left: %v", err)
				}
				if found, err := plain.Users(context.Background(), []int64{id}); err != nil || len(found) != tt.stored {
					t.Errorf("stored are %v, %v; want %d", found, err, tt.stored)
				}
				for call, run := range map[string]func(context.Context) error{
					"Update": func(ctx context.Context) error {
						return db.Update(ctx, victim, users.Patch{Name: ptr("after"), Address: ptr("here")})
					},
					"Delete": func(ctx context.Context) error { return db.Delete(ctx, victim) },
				} {
					commitSent.Store(false)
					err := run(untilCommit(t))
					gone := tt.stored == 1 && errors.Is(err, users.ErrNotFound) // the other was first
					if !errors.Is(err, users.ErrUnknownOutcome) && !gone {
						t.Errorf("%s = %v", call, err)
					}
				}

				proxy.Toxics.ResetToxics(context.Background())
				again := mustCreate(t, db, keyed("k"))
				if tt.stored == 1 && again != id {
					t.Errorf("the retry made %d beside %d", again, id)
				}
				mustUser(t, plain, again)
				if attrs, err := plain.Attributes(context.Background(), []int64{again}); err != nil || len(attrs[again]) != 2 {
					t.Errorf("half a user: %v, %v", attrs, err)
				}
				if n, want := countRows(t, plain, "users"), 2-tt.stored; n != want { // and the victim, if it lives
					t.Errorf("%d users, want %d", n, want)
				}
			})
		}
	}
}

const commitTimeout = 4 * time.Second // less than the driver takes to give up by itself

// untilCommit is a context that ends soon after a COMMIT was sent.
func untilCommit(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	t.Cleanup(cancel)
	go func() {
		for ctx.Err() == nil && !commitSent.Load() {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(50 * time.Millisecond) // the other cases end by themselves by then
		cancel()
	}()
	return ctx
}

// shortly is a context that ends soon.
func shortly(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

// A connection that is lost before the commit proves that nothing was stored.
func TestLostBeforeCommit(t *testing.T) {
	for name, get := range map[string]func(testing.TB) *testserver.Server{"mariadb": servers.MariaDB, "postgres": servers.Postgres} {
		t.Run(name, func(t *testing.T) {
			server := get(t)
			dsn, proxy := proxied(t, server, server.Database())
			db := openTest(t, Options{DSN: dsn})
			addToxic(t, proxy, `{"type":"lose_commit","stream":"upstream","attributes":{"at":"Elm Street"}}`)
			u := users.NewUser{Name: "x", Address: "1 Elm Street"}
			id, err := db.Create(shortly(t), u)
			if err == nil || errors.Is(err, users.ErrUnknownOutcome) || id != 0 {
				t.Errorf("Create = %d, %v", id, err)
			}
			proxy.Toxics.ResetToxics(context.Background())
			if n := countRows(t, db, "users"); n != 0 {
				t.Errorf("%d users", n)
			}
			mustCreate(t, db, u)
		})
	}
}

// What breaks a server, on one of its own.
func TestServerFaults(t *testing.T) {
	for name, start := range map[string]func(testing.TB, ...string) *testserver.Server{
		"mariadb": testserver.MariaDB, "postgres": testserver.Postgres,
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t)
			dsn := server.Database()
			for _, fault := range []struct {
				name string
				run  func(*testing.T, *testserver.Server, string)
			}{
				{"killed", testKilled},
				{"stopped", testStopped},
				{"paused", testPaused},
				{"read only", testReadOnly},
				{"deadlock", testDeadlock},
				{"too many connections", testTooMany},
			} {
				t.Run(fault.name, func(t *testing.T) { fault.run(t, server, dsn) })
			}
		})
	}
}

// warm uses several connections at once.
func warm(ctx context.Context, db *DB) error {
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { errs[i] = db.Ping(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// recovers waits until reads and a write succeed, every try with little time.
func recovers(t *testing.T, db *DB) {
	t.Helper()
	const limit = 2 * time.Second
	start := time.Now()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), limit/2)
		_, writeErr := db.Create(ctx, users.NewUser{Name: "x"})
		readErr := warm(ctx, db) // all of the pool, not only the connection that was just replaced
		cancel()
		if readErr == nil && writeErr == nil {
			break
		}
		if time.Since(start) > limit {
			t.Fatalf("after %v: read %v, write %v", limit, readErr, writeErr)
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Logf("recovered after %v", time.Since(start))
	if n := db.read.Stats().OpenConnections; n > 8 {
		t.Errorf("%d connections", n)
	}
}

// openWarm opens a database with eight connections.
func openWarm(t *testing.T, dsn string) *DB {
	t.Helper()
	db := openTest(t, Options{DSN: dsn, MaxConns: 8})
	if err := warm(context.Background(), db); err != nil {
		t.Fatal(err)
	}
	return db
}

func testKilled(t *testing.T, server *testserver.Server, dsn string) {
	db := openWarm(t, dsn)
	server.Kill()
	for call, err := range calls(shortly(t), db) {
		if err == nil || errors.Is(err, users.ErrUnknownOutcome) {
			t.Errorf("%s without a server = %v", call, err)
		}
	}
	server.Restart()
	recovers(t, db)
}

func testStopped(t *testing.T, server *testserver.Server, dsn string) {
	db := openWarm(t, dsn)
	server.Stop()
	server.Restart() // the pool has only seen connections that are closed since
	recovers(t, db)
}

func testPaused(t *testing.T, server *testserver.Server, dsn string) {
	db := openWarm(t, dsn)
	server.Pause()
	var wg sync.WaitGroup
	for range 30 { // more than the pool has connections
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			start := time.Now()
			for call, err := range calls(ctx, db) {
				if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, users.ErrUnknownOutcome) {
					t.Errorf("%s of a server that hangs = %v", call, err)
				}
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("calls returned %v after they began", took)
			}
		})
	}
	wg.Wait()
	server.Resume()
	recovers(t, db)
}

// calls makes one call of each kind.
func calls(ctx context.Context, db *DB) map[string]error {
	_, usersErr := db.Users(ctx, []int64{1, 2, 3})
	_, activeErr := db.ActiveIDs(ctx, users.ActiveQuery{Limit: 3, Cities: []int64{1, 2}})
	_, addressErr := db.Address(ctx, 1)
	_, createErr := db.Create(ctx, keyed("k"))
	_, voidsErr := db.Voids(ctx, 1)
	return map[string]error{
		"Users": usersErr, "ActiveIDs": activeErr, "Address": addressErr, "Create": createErr,
		"Update": db.Update(ctx, 1, users.Patch{Name: ptr("x")}), "Delete": db.Delete(ctx, 1),
		"Voids": voidsErr, "AddVoid": db.AddVoid(ctx, 1), "DropVoids": db.DropVoids(ctx, []int64{1}), "Ping": db.Ping(ctx),
	}
}

func testReadOnly(t *testing.T, server *testserver.Server, dsn string) {
	db := openTest(t, Options{DSN: dsn, MaxConns: 8})
	id := mustCreate(t, db, users.NewUser{Name: "x"})
	var name string
	if err := db.read.QueryRow(map[string]string{"mysql": "SELECT DATABASE()", "postgres": "SELECT current_database()"}[db.dialect.name]).Scan(&name); err != nil {
		t.Fatal(err)
	}
	on, off := "SET GLOBAL read_only = ON", "SET GLOBAL read_only = OFF"
	if db.dialect.name == "postgres" {
		on = "ALTER DATABASE " + name + " SET default_transaction_read_only = on"
		off = "ALTER DATABASE " + name + " RESET default_transaction_read_only"
	}
	server.Admin(on)
	defer server.Admin(off)
	reader, err := Open(context.Background(), Options{DSN: dsn, MaxConns: 8}) // an instance that starts now
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close() //nolint:errcheck // nothing was written
	_, createErr := reader.Create(shortly(t), keyed("k"))
	for call, err := range map[string]error{
		"Create": createErr,
		"Update": reader.Update(shortly(t), id, users.Patch{Name: ptr("y")}),
		"Delete": reader.Delete(shortly(t), id),
	} {
		if err == nil || errors.Is(err, users.ErrUnknownOutcome) || !strings.Contains(err.Error(), "read") {
			t.Errorf("%s on a read-only server = %v", call, err)
		}
	}
	if got := mustUser(t, reader, id); got.Name != "x" {
		t.Errorf("read %+v", got)
	}
}

// A deadlock with somebody else's transaction is not the caller's business.
func testDeadlock(t *testing.T, _ *testserver.Server, dsn string) {
	db := openTest(t, Options{DSN: dsn, MaxConns: 8})
	id := mustCreate(t, db, users.NewUser{Name: "x", Address: "y"})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	other, err := db.write.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close() //nolint:errcheck // committed below
	exec := func(text string, args ...any) {
		t.Helper()
		if _, err := other.ExecContext(ctx, db.dialect.bind(text), args...); err != nil {
			t.Fatal(err)
		}
	}
	// MySQL ends the transaction that has changed less; Postgres the one that has waited
	// longer. Both are ours.
	exec(db.dialect.begin)
	for range 20 {
		exec("INSERT INTO cache_voids (user_id, created_at) VALUES (1, 1)")
	}
	exec("UPDATE addresses SET address = 'z' WHERE user_id = ?", id)
	done := make(chan error, 1)
	go func() { done <- db.Update(ctx, id, users.Patch{Name: ptr("new"), Address: ptr("new")}) }()
	waitForLock(t, ctx, db)
	exec("UPDATE users SET avatar = 'other' WHERE id = ?", id)
	exec("COMMIT")
	if err := <-done; err != nil {
		t.Errorf("Update = %v", err)
	}
	got := mustUser(t, db, id)
	if address, err := db.Address(ctx, id); err != nil || address != "new" || got.Name != "new" || got.Avatar != "other" {
		t.Errorf("%+v at %q, %v", got, address, err)
	}
}

// waitForLock waits until a transaction waits for another.
func waitForLock(t *testing.T, ctx context.Context, db *DB) { //nolint:revive // t comes first in tests
	t.Helper()
	text := map[string]string{
		"mysql":    "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
		"postgres": "SELECT count(*) FROM pg_locks WHERE NOT granted",
	}[db.dialect.name]
	pool := db.read
	if db.dialect.name == "mysql" { // it shows transactions only to those with PROCESS
		pool = openRaw(t, strings.Replace(dsnOf(db), testserver.User+":", "admin:", 1))
	}
	// MySQL looks only if nobody has asked for a tenth of a second.
	for n := 0; n == 0; time.Sleep(150 * time.Millisecond) {
		if err := pool.QueryRowContext(ctx, text).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
}

func testTooMany(t *testing.T, server *testserver.Server, dsn string) {
	// All but a few of the server's connections are somebody else's.
	var pools []*sql.DB
	release := func() {
		for _, p := range pools {
			_ = p.Close()
		}
	}
	defer release()
	db := openTest(t, Options{DSN: dsn, MaxConns: 8})
	if db.dialect.name == "mysql" {
		server.Admin("SET GLOBAL max_connections = 12")
		defer server.Admin("SET GLOBAL max_connections = 151")
	}
	if err := db.Ping(context.Background()); err != nil {
		t.Fatal(err)
	}
	for range 120 {
		pool := openRaw(t, dsn)
		pools = append(pools, pool)
		if err := pool.Ping(); err != nil {
			break
		}
	}
	_, err := Open(shortly(t), Options{DSN: dsn})
	if err == nil || !strings.Contains(strings.ToLower(err.Error()), "too many") && !strings.Contains(err.Error(), "remaining connection slots") {
		t.Fatalf("Open = %v", err)
	}
	// Those that it has go on; more are an error for whoever asked.
	var wg sync.WaitGroup
	var refused, fine atomic.Int64
	for range 40 {
		wg.Go(func() {
			_, err := db.Users(shortly(t), []int64{1})
			_, writeErr := db.Create(shortly(t), users.NewUser{Name: "x"})
			for _, err := range []error{err, writeErr} {
				if err == nil {
					fine.Add(1)
				} else {
					refused.Add(1)
				}
				if errors.Is(err, users.ErrUnknownOutcome) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if fine.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d calls succeeded, %d were refused", fine.Load(), refused.Load())
	}
	if n := db.read.Stats().OpenConnections; n > 8 {
		t.Errorf("%d connections", n)
	}
	release()
	recovers(t, db)
}
