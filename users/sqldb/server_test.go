package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pinion/internal/testserver"
	"pinion/users"
)

// What every connection to a server is like.
func TestServerSettings(t *testing.T) {
	settings := map[string][][2]string{
		"mysql": {
			{"@@sql_mode", "STRICT_ALL_TABLES"},
			{"@@sql_mode", "ANSI_QUOTES"},
			{"@@tx_isolation", "READ-COMMITTED"},
			{"@@character_set_client", "utf8mb4"},
			{"@@collation_connection", "utf8mb4_bin"},
			{"@@innodb_lock_wait_timeout", "3"},
		},
		"postgres": {
			{"current_setting('application_name')", "pinion"},
			{"current_setting('transaction_isolation')", "read committed"},
		},
	}
	onServers(t, Options{MaxConns: 3}, func(t *testing.T, db *DB) {
		for _, s := range settings[db.dialect.name] {
			var got string
			if err := db.read.QueryRow("SELECT " + s[0]).Scan(&got); err != nil || !strings.Contains(got, s[1]) {
				t.Errorf("%s = %q, %v; want %q in it", s[0], got, err, s[1])
			}
		}
		if n := db.read.Stats().MaxOpenConnections; n != 3 {
			t.Errorf("%d connections, want 3", n)
		}
	})
}

// Connections that were opened are kept.
func TestServerKeepsConnections(t *testing.T) {
	onServers(t, Options{MaxConns: 6}, func(t *testing.T, db *DB) {
		for range 3 {
			var wg sync.WaitGroup
			for range 30 {
				wg.Go(func() {
					if err := db.Ping(context.Background()); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		s := db.read.Stats()
		if s.MaxIdleClosed != 0 || s.OpenConnections > 6 {
			t.Errorf("%d connections given up, %d open", s.MaxIdleClosed, s.OpenConnections)
		}
	})
}

// Keys that only their bytes tell apart are different keys.
func TestKeysAreBytes(t *testing.T) {
	onAll(t, Options{}, func(t *testing.T, db *DB) {
		attrs := []users.Attribute{
			{Key: "K", Value: "1"},
			{Key: "a", Value: "2"},
			{Key: "a ", Value: "3"},
			{Key: "e", Value: "4"},
			{Key: "k", Value: "5"},
			{Key: "ss", Value: "6"},
			{Key: "ß", Value: "7"},
			{Key: "é", Value: "8"},
			{Key: "ａ", Value: "9"},
		}
		id := mustCreate(t, db, users.NewUser{Name: "x", Attributes: attrs})
		got, err := db.Attributes(context.Background(), []int64{id})
		if err != nil || !slices.Equal(sorted(got[id]), sorted(attrs)) {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

// What does not fit is an error. Nothing is cut to fit.
func TestTooLong(t *testing.T) {
	onServers(t, Options{}, func(t *testing.T, db *DB) {
		if db.dialect.name == "postgres" {
			return // its texts have no limit
		}
		if id, err := db.Create(context.Background(), users.NewUser{Name: strings.Repeat("x", 300)}); err == nil {
			t.Errorf("created %d: %+v", id, mustUser(t, db, id))
		}
	})
}

// explain returns the plan of a query, one row a line.
func explain(t *testing.T, db *DB, text string, args ...any) string {
	t.Helper()
	rows, err := db.read.Query(db.dialect.bind("EXPLAIN "+text), args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // Err says whether the rows were read
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		dest := make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		if err := rows.Scan(dest...); err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			fmt.Fprintf(&b, "%s=%s; ", columns[i], v.String)
		}
		b.WriteByte('\n')
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The active query reads nothing but its index, in order, and stops at its limit.
func TestActivePlanOnServers(t *testing.T) {
	onServers(t, Options{MaxConns: 1}, func(t *testing.T, db *DB) {
		if _, err := db.Fill(context.Background(), 3000, nil); err != nil {
			t.Fatal(err)
		}
		if db.dialect.name == "mysql" {
			for text, args := range map[string][]any{
				selectActive: {0, 50}, selectActiveInCity: {1, 0, 50},
			} {
				index := "users_active;"
				if text == selectActiveInCity {
					index = "users_active_by_city;"
				}
				got := explain(t, db, text, args...)
				if !strings.Contains(got, " key="+index) || !strings.Contains(got, "Using index") || strings.Contains(got, "filesort") {
					t.Errorf("%s:\n%s", text, got)
				}
			}
			got := explain(t, db, activeInCities(4), citiesArgs(4)...)
			if n := strings.Count(got, "key=users_active_by_city;"); n != 4 || strings.Count(got, "filesort") > 1 || strings.Count(got, "table=users;") != 4 {
				t.Errorf("cities:\n%s", got)
			}
			return
		}
		// The plan that is kept for every value of the parameters.
		if _, err := db.read.Exec("SET plan_cache_mode = force_generic_plan"); err != nil {
			t.Fatal(err)
		}
		for i, q := range []struct{ text, types, args, index string }{
			{selectActive, "bigint, bigint", "0, 50", "users_active"},
			{selectActiveInArray, "bigint[], bigint, bigint, bigint", "'{1,2,3,4}', 0, 50, 50", "users_active_by_city"},
		} {
			if _, err := db.read.Exec(fmt.Sprintf("PREPARE q%d (%s) AS %s", i, q.types, db.dialect.bind(q.text))); err != nil {
				t.Fatal(err)
			}
			got := explain(t, db, fmt.Sprintf("EXECUTE q%d (%s)", i, q.args))
			if !strings.Contains(got, "Index Only Scan using "+q.index+" on users") || strings.Contains(got, "Seq Scan") || strings.Contains(got, "Heap Scan") {
				t.Errorf("%s:\n%s", q.text, got)
			}
			if strings.Count(got, "->  Sort ") > i { // the merged parts only
				t.Errorf("%s: sorts:\n%s", q.text, got)
			}
		}
	})
}

// A list of ids is looked up in the primary key, however many there are.
func TestListPlansOnServers(t *testing.T) {
	onServers(t, Options{}, func(t *testing.T, db *DB) {
		if db.dialect.name == "postgres" {
			return // small tables are read from end to end there, which is right
		}
		if _, err := db.Fill(context.Background(), 3000, nil); err != nil {
			t.Fatal(err)
		}
		for _, q := range []*listQuery{db.rows, db.attributes, db.members} {
			for _, n := range []int{1, 256} {
				ids := make([]int64, n)
				for i := range ids {
					ids[i] = int64(i + 1)
				}
				got := explain(t, db, q.written(ids))
				if !strings.Contains(got, "key=PRIMARY;") || strings.Count(got, "\n") != 1 {
					t.Errorf("%s with %d ids:\n%s", q.head, n, got)
				}
			}
		}
	})
}

// Instances that start at the same time bring the schema up to date once.
func TestMigrateAtOnce(t *testing.T) {
	for name, dsn := range map[string]func() string{
		"file":     func() string { return fileDSN(t) },
		"mariadb":  func() string { return servers.MariaDB(t).Database() },
		"postgres": func() string { return servers.Postgres(t).Database() },
	} {
		t.Run(name, func(t *testing.T) {
			dsn := dsn()
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
					defer cancel()
					db, err := Open(ctx, Options{DSN: dsn})
					if err != nil {
						t.Error(err)
						return
					}
					if _, err := db.Create(ctx, users.NewUser{Name: "x"}); err != nil {
						t.Error(err)
					}
					if err := db.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			db := openTest(t, Options{DSN: dsn})
			var n, made int
			if err := db.read.QueryRow("SELECT count(*) FROM schema_migrations WHERE applied_at > 0").Scan(&n); err != nil || n != 2 {
				t.Errorf("%d migrations, %v; want 2", n, err)
			}
			if err := db.read.QueryRow("SELECT count(*) FROM users").Scan(&made); err != nil || made != 10 {
				t.Errorf("%d users, %v; want 10", made, err)
			}
		})
	}
}

// openRaw opens a database without a schema.
func openRaw(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	target, err := parseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	c, err := (&DB{target: target, dialect: target.dialect, timeout: DefaultTimeout}).connector(true)
	if err != nil {
		t.Fatal(err)
	}
	pool := sql.OpenDB(c)
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

func mustExec(t *testing.T, pool *sql.DB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if _, err := pool.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// A migration that was cut off goes on where it was, after any of its statements and
// whether or not the last one ran.
func TestMigrateResumes(t *testing.T) {
	steps, err := readMigrations(migrationFiles, "mysql")
	if err != nil {
		t.Fatal(err)
	}
	first := steps[0]
	for begun := range len(first.statements) + 1 {
		for _, ran := range []bool{false, true} {
			if begun == 0 && ran {
				continue
			}
			t.Run(fmt.Sprint(begun, ran), func(t *testing.T) {
				dsn := servers.MariaDB(t).Database()
				raw := openRaw(t, dsn)
				mustExec(t, raw, mysqlDialect().createMigrations,
					fmt.Sprintf("INSERT INTO schema_migrations (version, name, applied_at, step) VALUES (1, '%s', 0, %d)", first.name, begun))
				for i, s := range first.statements[:begun] {
					if ran || i+1 < begun {
						mustExec(t, raw, s)
					}
				}
				db := openTest(t, Options{DSN: dsn})
				mustUser(t, db, mustCreate(t, db, users.NewUser{Name: "x", Address: "y", Attributes: []users.Attribute{{Key: "k"}}, Key: "z"}))
			})
		}
	}
}

// Tables of somebody else's are refused, at every try.
func TestMigrateForeign(t *testing.T) {
	for name, server := range map[string]func(testing.TB) *testserver.Server{"mariadb": servers.MariaDB, "postgres": servers.Postgres} {
		for _, table := range []string{"users", "addresses", "members", "cache_voids"} {
			t.Run(name+"/"+table, func(t *testing.T) {
				dsn := server(t).Database()
				mustExec(t, openRaw(t, dsn), "CREATE TABLE "+table+" (x INTEGER)")
				for range 3 {
					db, err := Open(context.Background(), Options{DSN: dsn})
					if err == nil {
						t.Fatal("opened", db.Close())
					}
					if !strings.Contains(err.Error(), "already exists") || !strings.Contains(err.Error(), table) ||
						strings.ContainsAny(err.Error(), "\n") || errors.Is(err, ErrUnsupported) {
						t.Fatalf("got %v", err)
					}
				}
				// Without it, all is well.
				mustExec(t, openRaw(t, dsn), "DROP TABLE "+table)
				openTest(t, Options{DSN: dsn})
			})
		}
	}
}

func TestServerNewerSchema(t *testing.T) {
	onServers(t, Options{}, func(t *testing.T, db *DB) {
		mustExec(t, db.write, "INSERT INTO schema_migrations (version, name, applied_at) VALUES (99, 'x', 1)")
		_, err := Open(context.Background(), Options{DSN: dsnOf(db)})
		if !errors.Is(err, errNewerSchema) {
			t.Errorf("got %v", err)
		}
	})
}

// dsnOf is the DSN of a database of a test server.
func dsnOf(db *DB) string {
	u := url.URL{
		Scheme: db.dialect.name, User: url.UserPassword(db.target.user, db.target.password),
		Host: db.target.addr(), Path: db.target.name,
	}
	if mode := db.target.params["sslmode"]; mode != "" {
		u.RawQuery = "sslmode=" + mode
	}
	return u.String()
}

// Open says what is wrong with a server, without the password.
func TestServerOpenFails(t *testing.T) {
	const password = "p4ss/w?rd@1" // as it is written down, it has to be escaped
	for name, server := range map[string]*testserver.Server{"mysql": servers.MariaDB(t), "postgres": servers.Postgres(t)} {
		free := testserver.Redis(t) // a port that speaks something else
		for _, tt := range []struct {
			name, want string
			change     func(u *url.URL)
		}{
			{"wrong password", "", func(u *url.URL) { u.User = url.UserPassword(testserver.User, password) }},
			{"no such user", "", func(u *url.URL) { u.User = url.UserPassword("nobody", password) }},
			{"no such database", "", func(u *url.URL) { u.Path = "/pinion_nowhere" }},
			{"nobody there", "refused", func(u *url.URL) { u.Host = "127.0.0.1:1"; u.User = url.UserPassword("x", password) }},
			{"another protocol", "", func(u *url.URL) { u.Host = free.Addr(); u.User = url.UserPassword("x", password) }},
			{"TLS that is not there", "", func(u *url.URL) {
				u.RawQuery = map[string]string{"mysql": "tls=true", "postgres": "sslmode=require"}[name]
			}},
			{"no such certificate", "no such file", func(u *url.URL) {
				u.RawQuery = map[string]string{"mysql": "tls=true&tls-ca=/nowhere", "postgres": "sslmode=verify-ca&sslrootcert=/nowhere"}[name]
			}},
		} {
			t.Run(name+"/"+tt.name, func(t *testing.T) {
				u, err := url.Parse(server.DSN())
				if err != nil {
					t.Fatal(err)
				}
				tt.change(u)
				ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
				defer cancel()
				db, err := Open(ctx, Options{DSN: u.String(), Timeout: time.Second})
				if err == nil {
					t.Fatal("opened", db.Close())
				}
				text := err.Error()
				if !strings.HasPrefix(text, "open database "+name+"://"+u.Host+u.Path+": ") || !strings.Contains(text, tt.want) ||
					strings.Contains(text, "p4ss") || strings.Contains(text, testserver.Password) {
					t.Errorf("got %q", text)
				}
			})
		}
	}
}
