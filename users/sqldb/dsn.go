package sqldb

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// ErrUnsupported marks a database name that Open cannot serve, as opposed to a
// database that it cannot open.
var ErrUnsupported = errors.New("unsupported database")

const (
	scheme     = "sqlite:"
	memoryName = ":memory:"
)

// parseDSN returns the path of the database file, or memoryName. Everything after
// "sqlite:" is the path, whatever characters it holds.
func parseDSN(dsn string) (path string, err error) {
	path, ok := strings.CutPrefix(dsn, scheme)
	if !ok || path == "" || strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("%w %q: want %sFILE or %s", ErrUnsupported, redact(dsn), scheme, scheme+memoryName)
	}
	if path == memoryName {
		return path, nil
	}
	// Clean also keeps "//" at the front from being read as a host name.
	return filepath.Clean(path), nil
}

// redact cuts a name that may hold a password down to its scheme. Where the password
// would end is anybody's guess: it may itself hold any of the delimiters.
func redact(dsn string) string {
	if !strings.ContainsAny(dsn, "@?") {
		return dsn
	}
	if scheme, _, ok := strings.Cut(dsn, "://"); ok && !strings.ContainsAny(scheme, "@?:") {
		return scheme + "://..."
	}
	return "..."
}

// driverName is the name by which the SQLite driver opens path with the given query.
func driverName(path string, query url.Values) string {
	u := url.URL{Path: path}
	return "file:" + u.EscapedPath() + "?" + query.Encode()
}
