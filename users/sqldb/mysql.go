package sqldb

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
)

// mysqlMode makes the server refuse what it would otherwise change to fit, and read "key"
// as the name of a column, as the other databases do.
const mysqlMode = "'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,ANSI_QUOTES'"

// mysqlConnector returns a connector for MySQL or MariaDB. Without a limit on the time of
// an answer a statement ends with its context only.
func (t *target) mysqlConnector(timeout time.Duration, limited bool) (driver.Connector, error) {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd, cfg.DBName = t.user, t.password, t.name
	cfg.Net, cfg.Addr = "tcp", t.addr()
	cfg.Collation = "utf8mb4_bin"
	cfg.InterpolateParams = true // one round trip a statement instead of three
	cfg.ClientFoundRows = true   // a row that is found but not changed counts
	cfg.Logger = &mysql.NopLogger{}
	cfg.Timeout = timeout
	if limited {
		// The context of a call ends first: a connection that the driver gives up itself
		// looks like one that was lost, and its query would be sent again.
		cfg.ReadTimeout, cfg.WriteTimeout = timeout+driverSlack, timeout+driverSlack
	}
	cfg.Params = map[string]string{
		"sql_mode":                 mysqlMode,
		"innodb_lock_wait_timeout": strconv.FormatInt(lockWait(timeout), 10),
	}
	if err := t.mysqlTLS(cfg); err != nil {
		return nil, err
	}
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return mysqlConnector{Connector: c, timeout: timeout}, nil
}

// driverSlack is what the driver waits longer than the contexts of its callers.
const driverSlack = 500 * time.Millisecond

// maxLockWait is the longest wait for a lock, in seconds. The server's own 50 s outlast
// every caller.
const maxLockWait = 3

// lockWait is how many seconds a statement may wait for a lock: less than timeout, which
// would end the connection instead of telling of the lock. MySQL knows only whole
// seconds, and no wait below one.
func lockWait(timeout time.Duration) int64 {
	return min(max(1, int64((timeout-1)/time.Second)), maxLockWait)
}

func (t *target) mysqlTLS(cfg *mysql.Config) error {
	cfg.TLSConfig = t.params["tls"]
	switch cfg.TLSConfig {
	case "", "true", "false", "skip-verify", "preferred":
	default:
		return fmt.Errorf("%w: tls must be true, false, skip-verify or preferred", ErrUnsupported)
	}
	path := t.params["tls-ca"]
	if path == "" {
		return nil
	}
	if cfg.TLSConfig != "true" {
		return fmt.Errorf("%w: tls-ca needs tls=true", ErrUnsupported)
	}
	pem, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s: no certificate in PEM form", path)
	}
	cfg.TLS = &tls.Config{RootCAs: roots, ServerName: t.host, MinVersion: tls.VersionTLS12}
	return nil
}

// mysqlConnector makes connections whose transactions are READ COMMITTED. The server's
// default also locks the gaps between rows, so that writes to different users wait for
// each other, or deadlock. The variable for it goes by two names; the statement by one.
type mysqlConnector struct {
	driver.Connector
	timeout time.Duration
}

// Connect implements driver.Connector.
func (c mysqlConnector) Connect(ctx context.Context) (driver.Conn, error) {
	// The driver's own limit ends with the connection: what answers may still be silent.
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if e, ok := conn.(driver.ExecerContext); ok {
		_, err = e.ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", nil)
	}
	if err != nil {
		_ = conn.Close() // the first error says more
		return nil, err
	}
	return conn, nil
}

// Numbers of MySQL's errors.
const (
	mysqlTableExists       = 1050
	mysqlColumnExists      = 1060
	mysqlIndexExists       = 1061
	mysqlDropMissing       = 1091
	mysqlErrorDuringCommit = 1180
	mysqlLockWaitTimeout   = 1205
	mysqlDeadlock          = 1213
	mysqlShutdown          = 1053
	mysqlInterrupted       = 1317
	mysqlConnectionKilled  = 1927 // MariaDB
)

// mysqlVerdict: an error that the server answers has rolled the transaction back, except
// those that tell of the end of the connection or of a commit that got stuck halfway.
func mysqlVerdict(err error) verdict {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return lost
	}
	switch e.Number {
	case mysqlDeadlock, mysqlLockWaitTimeout:
		return conflict
	case mysqlErrorDuringCommit, mysqlShutdown, mysqlInterrupted, mysqlConnectionKilled:
		return lost
	}
	return refused
}

// mysqlDone reports whether err says that a change of the schema has been made already.
func mysqlDone(err error) bool {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Number {
	case mysqlTableExists, mysqlColumnExists, mysqlIndexExists, mysqlDropMissing:
		return true
	}
	return false
}

// lockMySQL takes a lock of the whole server, so its name holds that of the database. It
// asks again every second: the server would not soon notice that nobody waits any more.
func lockMySQL(ctx context.Context, conn *sql.Conn) error {
	for {
		var got sql.NullInt64
		err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(CONCAT('pinion ', MD5(DATABASE())), 1)").Scan(&got)
		if err != nil {
			return err
		}
		if got.Int64 == 1 {
			return nil
		}
	}
}
