package sqldb

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrUnsupported marks a database name that Open cannot serve, as opposed to a
// database that it cannot open.
var ErrUnsupported = errors.New("unsupported database")

const (
	scheme         = "sqlite:"
	mysqlScheme    = "mysql"
	postgresScheme = "postgres"
	memoryName     = ":memory:"
)

// target is a database as its DSN names it.
type target struct {
	dialect *dialect
	path    string // of the SQLite file, or memoryName

	// Of a server.
	host, port     string
	name           string // of the database
	user, password string
	params         map[string]string
}

// CheckDSN returns an error that matches ErrUnsupported if Open could not serve the
// database of that name, whatever is there. It connects to nothing.
func CheckDSN(dsn string) error {
	t, err := parseDSN(dsn)
	if err != nil || !t.dialect.server {
		return err
	}
	if port, err := strconv.ParseUint(t.port, 10, 16); err != nil || port == 0 {
		return fmt.Errorf("%w %q: the port must be a number from 1 to 65535", ErrUnsupported, &t)
	}
	// The drivers look at the parameters when they make a connector.
	db := &DB{target: t, dialect: t.dialect, timeout: DefaultTimeout}
	if _, err := db.connector(true); err != nil {
		err = t.hide(err)
		if errors.Is(err, ErrUnsupported) {
			return err
		}
		return fmt.Errorf("%w %q: %w", ErrUnsupported, &t, err)
	}
	return nil
}

// InMemory reports whether dsn names a database that is only in this process's memory.
func InMemory(dsn string) bool {
	t, err := parseDSN(dsn)
	return err == nil && t.path == memoryName
}

// OnServer reports whether dsn names a database on a server.
func OnServer(dsn string) bool {
	t, err := parseDSN(dsn)
	return err == nil && t.dialect.server
}

// parseDSN reads the name of a database. Everything after "sqlite:" is the path,
// whatever characters it holds; the others are URLs.
func parseDSN(dsn string) (target, error) {
	refuse := func(why string) (target, error) {
		return target{}, fmt.Errorf("%w %q: %s", ErrUnsupported, redact(dsn), why)
	}
	if path, ok := strings.CutPrefix(dsn, scheme); ok && path != "" && !strings.ContainsRune(path, 0) {
		if path != memoryName {
			path = filepath.Clean(path) // also keeps "//" at the front from being read as a host name
			if path == memoryName {
				path = "./" + path // a file of that name
			}
		}
		return target{dialect: sqliteDialect(), path: path}, nil
	}
	var t target
	name, _, _ := strings.Cut(dsn, "://")
	switch name {
	case mysqlScheme:
		t.dialect, t.port = mysqlDialect(), "3306"
	case postgresScheme, "postgresql":
		t.dialect, t.port = postgresDialect(), "5432"
	default:
		return refuse("want sqlite:FILE, sqlite::memory:, mysql://USER:PASSWORD@HOST:PORT/NAME or postgres://USER:PASSWORD@HOST:PORT/NAME")
	}
	if why := t.parseURL(dsn); why != "" {
		return refuse(why)
	}
	return t, nil
}

// parseURL reads the name of a database on a server. What it answers when it fails says
// what is wrong without a piece of the name: a password that is not escaped may end
// anywhere in it.
func (t *target) parseURL(dsn string) (why string) {
	u, err := url.Parse(dsn)
	if err != nil || u.User == nil || strings.Contains(u.Path+u.RawQuery+u.Fragment, "@") {
		return "want USER:PASSWORD@HOST:PORT/NAME; in a user or a password, escape all but letters and digits, as in %40 for @"
	}
	t.user = u.User.Username()
	t.password, _ = u.User.Password()
	t.host = u.Hostname()
	if port := u.Port(); port != "" {
		t.port = port
	}
	t.name = strings.TrimPrefix(u.Path, "/")
	switch {
	case t.user == "":
		return "want a user"
	case t.host == "":
		return "want a host"
	case t.name == "" || strings.ContainsAny(t.name, "/\x00"):
		return "want the name of a database after the host"
	case u.Fragment != "":
		return "want no #"
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "the parameters cannot be read"
	}
	t.params = make(map[string]string, len(query))
	known := t.dialect.params()
	for key, values := range query {
		if !slices.Contains(known, key) || len(values) != 1 {
			return "unknown or repeated parameter; known are " + strings.Join(known, ", ")
		}
		t.params[key] = values[0]
	}
	return ""
}

// params are the parameters that a DSN may have.
func (d *dialect) params() []string {
	if d.name == mysqlScheme {
		return []string{"tls", "tls-ca"}
	}
	return []string{"application_name", "default_query_exec_mode", "search_path", "sslcert", "sslkey", "sslmode", "sslrootcert"}
}

// String names the database without user, password and parameters.
func (t *target) String() string {
	if !t.dialect.server {
		return t.path
	}
	return t.dialect.name + "://" + t.addr() + "/" + t.name
}

func (t *target) addr() string { return net.JoinHostPort(t.host, t.port) }

// hide keeps the password out of the text of an error. Drivers do not show it; the
// text of one that does is worth less than the password.
func (t *target) hide(err error) error {
	if err == nil || t.password == "" || !strings.Contains(err.Error(), t.password) {
		return err
	}
	return hidden{err: err, text: strings.ReplaceAll(err.Error(), t.password, "...")}
}

// hidden is an error whose text has been changed.
type hidden struct {
	err  error
	text string
}

// Error returns the text without the password.
func (h hidden) Error() string { return h.text }

// Is looks for target in the error underneath, which itself cannot be reached.
func (h hidden) Is(target error) bool { return errors.Is(h.err, target) }

// redact cuts a name that may hold a password down to its scheme. Where the password
// would end is anybody's guess: it may itself hold any of the delimiters.
func redact(dsn string) string {
	if !strings.ContainsAny(dsn, "@?") && !strings.HasPrefix(dsn, mysqlScheme) && !strings.HasPrefix(dsn, postgresScheme) {
		return dsn
	}
	if scheme, _, ok := strings.Cut(dsn, "://"); ok && !strings.ContainsAny(scheme, "@?:") {
		return scheme + "://..."
	}
	return "..."
}
