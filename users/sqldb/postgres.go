package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// postgresConnector returns a connector for Postgres. The driver prepares what it is
// asked, once for each connection.
func (t *target) postgresConnector(timeout time.Duration) (driver.Connector, error) {
	cfg, err := t.postgresConfig(timeout)
	if err != nil {
		return nil, err
	}
	return stdlib.GetConnector(*cfg), nil
}

func (t *target) postgresConfig(timeout time.Duration) (*pgx.ConnConfig, error) {
	u := url.URL{
		Scheme: postgresScheme, User: url.UserPassword(t.user, t.password), Host: t.addr(), Path: "/" + t.name,
	}
	query := url.Values{"application_name": {"pinion"}}
	for key, value := range t.params {
		query.Set(key, value)
	}
	u.RawQuery = query.Encode()
	cfg, err := pgx.ParseConfig(u.String())
	if err != nil {
		// Of a whole DSN only the parameters are left to be wrong, or their files.
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	cfg.ConnectTimeout = timeout
	return cfg, nil
}

// Codes of Postgres's errors.
const (
	postgresSerialization = "40001"
	postgresDeadlock      = "40P01"
)

// postgresVerdict: an ERROR has rolled the transaction back; FATAL and PANIC tell of the
// end of the connection, whatever happened before.
func postgresVerdict(err error) verdict {
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.SeverityUnlocalized != "ERROR" {
		return lost
	}
	switch e.Code {
	case postgresSerialization, postgresDeadlock:
		return conflict
	}
	return refused
}

// lockPostgres takes a lock of the database. The number means nothing.
func lockPostgres(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock(8100116105115)")
	return err
}
