package testserver

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// MariaDB starts a MariaDB server that ends with the test.
func MariaDB(t testing.TB, args ...string) *Server {
	t.Helper()
	return launch(t, mariaDB(), args)
}

func mariaDB() *kind {
	return &kind{
		name:     "mariadb",
		packages: "mariadb-server",
		programs: []string{"mariadbd", "mariadb-install-db"},
		places:   []string{"/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"},
		ending:   syscall.SIGTERM,
		prepare:  prepareMariaDB,
		args:     mariaDBArgs,
		dsn: func(addr, database string) string {
			return "mysql://" + User + ":" + Password + "@" + addr + "/" + database
		},
		query: queryMariaDB,
		ping: func(ctx context.Context, addr string) error {
			_, err := queryMariaDB(ctx, addr, User, "SELECT 1")
			return err
		},
	}
}

// queryMariaDB runs one statement and returns the first column of its rows as text.
func queryMariaDB(ctx context.Context, addr, user, text string) (found []string, err error) {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.Addr = user, Password, "tcp", addr
	cfg.Logger = &mysql.NopLogger{} // that nobody answers yet is no news
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(connector)
	defer pool.Close() //nolint:errcheck // the statement has been answered
	rows, err := pool.QueryContext(ctx, text)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err says whether the rows were read
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return found, rows.Err()
}

func prepareMariaDB(p *process) error {
	// Read at every start, before the port opens.
	const users = "CREATE DATABASE IF NOT EXISTS " + User + ";\n" +
		"CREATE USER IF NOT EXISTS '" + User + "'@'%' IDENTIFIED BY '" + Password + "';\n" +
		"GRANT ALL ON `" + User + "%`.* TO '" + User + "'@'%';\n" +
		"CREATE USER IF NOT EXISTS '" + admin + "'@'%' IDENTIFIED BY '" + Password + "';\n" +
		"GRANT ALL ON *.* TO '" + admin + "'@'%';\n"
	init := filepath.Join(p.dir, "init.sql")
	if err := os.WriteFile(init, []byte(users), 0o600); err != nil {
		return err
	}
	if err := giveAway(init); err != nil {
		return err
	}
	return p.run("mariadb-install-db", "--no-defaults", "--datadir="+filepath.Join(p.dir, "data"),
		"--auth-root-authentication-method=normal", "--skip-test-db", "--innodb-log-file-size=8M")
}

func mariaDBArgs(p *process) []string {
	return []string{
		"--no-defaults",
		"--datadir=" + filepath.Join(p.dir, "data"),
		"--init-file=" + filepath.Join(p.dir, "init.sql"),
		"--bind-address=127.0.0.1",
		"--port=" + p.port(),
		"--socket=mariadb.sock", // in the data directory, however long its name is
		"--pid-file=mariadb.pid",
		"--skip-name-resolve",
		"--skip-log-bin",
		"--innodb-buffer-pool-size=64M",
		"--innodb-log-file-size=64M",
		"--innodb-flush-log-at-trx-commit=2", // to the kernel at every commit, to the disk once a second
		"--key-buffer-size=1M",
		"--aria-pagecache-buffer-size=8M",
	}
}
