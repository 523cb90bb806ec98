package testserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Postgres starts a PostgreSQL server that ends with the test. Arguments are those of
// the program postgres, as in "-c", "max_connections=10".
func Postgres(t testing.TB, args ...string) *Server {
	t.Helper()
	return launch(t, postgres(), args)
}

func postgres() *kind {
	return &kind{
		name:     "postgres",
		packages: "postgresql",
		programs: []string{"postgres", "initdb"},
		places:   []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin"},
		ending:   syscall.SIGINT, // SIGTERM waits until all clients have left
		owned:    " OWNER " + User,
		prepare:  preparePostgres,
		args:     postgresArgs,
		dsn: func(addr, database string) string {
			return "postgres://" + User + ":" + Password + "@" + addr + "/" + database + "?sslmode=disable"
		},
		query: queryPostgres,
		ping:  pingPostgres,
	}
}

// queryPostgres runs one statement and returns the first column of its rows as text.
func queryPostgres(ctx context.Context, addr, user, text string) ([]string, error) {
	conn, err := pgx.Connect(ctx, "postgres://"+user+":"+Password+"@"+addr+"/postgres?sslmode=disable&connect_timeout=5")
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx) //nolint:errcheck // the statement has been answered
	results, err := conn.PgConn().Exec(ctx, text).ReadAll()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, result := range results {
		for _, row := range result.Rows {
			found = append(found, string(row[0]))
		}
	}
	return found, nil
}

// pingPostgres also makes the user and its database, when they are not there yet: there
// is no file for that as MariaDB has.
func pingPostgres(ctx context.Context, addr string) error {
	there, err := queryPostgres(ctx, addr, admin, "SELECT 1 FROM pg_database WHERE datname = '"+User+"'")
	if err != nil || len(there) > 0 {
		return err
	}
	_, first := queryPostgres(ctx, addr, admin, "CREATE ROLE "+User+" LOGIN PASSWORD '"+Password+"'")
	_, second := queryPostgres(ctx, addr, admin, "CREATE DATABASE "+User+" OWNER "+User)
	return errors.Join(first, second)
}

func preparePostgres(p *process) error {
	password := filepath.Join(p.dir, "password")
	if err := os.WriteFile(password, []byte(Password), 0o600); err != nil {
		return err
	}
	if err := giveAway(password); err != nil {
		return err
	}
	return p.run("initdb", "--pgdata="+filepath.Join(p.dir, "data"), "--no-sync", "--auth=scram-sha-256",
		"--username="+admin, "--pwfile="+password, "--encoding=UTF8", "--no-locale")
}

func postgresArgs(p *process) []string {
	return []string{
		"-D", filepath.Join(p.dir, "data"),
		"-c", "listen_addresses=127.0.0.1",
		"-c", "port=" + p.port(),
		"-c", "unix_socket_directories=",
		"-c", "fsync=off", // the kernel still gets every commit
		"-c", "shared_buffers=32MB",
		"-c", "max_connections=100",
	}
}
