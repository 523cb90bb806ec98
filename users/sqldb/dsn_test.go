package sqldb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

func TestParseDSN(t *testing.T) {
	for _, tt := range []struct{ dsn, want string }{
		{"sqlite:pinion.db", "pinion.db"},
		{"sqlite::memory:", ":memory:"},
		{"sqlite:/var/lib/pinion/users.db", "/var/lib/pinion/users.db"},
		{"sqlite:///var/users.db", "/var/users.db"},
		{"sqlite:./a/../b.db", "b.db"},
		{"sqlite:what?mode=ro#1.db", "what?mode=ro#1.db"},
		{"mysql://u:p@db/users", "mysql://db:3306/users"},
		{"mysql://u@db:3307/users?tls=true", "mysql://db:3307/users"},
		{"postgres://u:p@[::1]/users", "postgres://[::1]:5432/users"},
		{"postgresql://u:p@db:1/users?sslmode=disable&search_path=x", "postgres://db:1/users"},
	} {
		got, err := parseDSN(tt.dsn)
		if err != nil || got.String() != tt.want {
			t.Errorf("parseDSN(%q) = %q, %v; want %q", tt.dsn, got.String(), err, tt.want)
		}
	}
}

// Users and passwords may hold anything, written as URLs write it.
func TestParseDSNEscapes(t *testing.T) {
	const user, password, name = "u:@/ ü", "p@:/?#%& ü+", "users 1"
	for _, scheme := range []string{"mysql", "postgres"} {
		u := url.URL{Scheme: scheme, User: url.UserPassword(user, password), Host: "h:1", Path: "/" + name}
		got, err := parseDSN(u.String())
		if err != nil || got.user != user || got.password != password || got.name != name || got.addr() != "h:1" {
			t.Errorf("parseDSN(%q) = %+v, %v", u.String(), got, err)
			continue
		}
		// The driver gets it as it was meant.
		if scheme == "postgres" {
			cfg, err := got.postgresConfig(time.Second)
			if err != nil || cfg.User != user || cfg.Password != password || cfg.Database != name || cfg.Host != "h" || cfg.Port != 1 {
				t.Errorf("%q: user %q, password %q, database %q, %v", u.String(), cfg.User, cfg.Password, cfg.Database, err)
			}
		}
	}
}

func TestParseDSNFails(t *testing.T) {
	const (
		which  = "want sqlite:FILE, sqlite::memory:, mysql://USER:PASSWORD@HOST:PORT/NAME or postgres://USER:PASSWORD@HOST:PORT/NAME"
		escape = "want USER:PASSWORD@HOST:PORT/NAME; in a user or a password, escape all but letters and digits, as in %40 for @"
		params = "unknown or repeated parameter; known are "
		ofM    = params + "tls, tls-ca"
		ofP    = params + "application_name, default_query_exec_mode, search_path, sslcert, sslkey, sslmode, sslrootcert"
	)
	for _, tt := range []struct{ dsn, shown, why string }{
		{"ftp://x", `"ftp://x"`, which},
		{"", `""`, which},
		{"pinion.db", `"pinion.db"`, which},
		{"sqlite:", `"sqlite:"`, which},
		{"sqlite:a\x00b", `"sqlite:a\x00b"`, which},
		{"mysql:root:secret@db/users", `"..."`, which},
		{"root:secret@tcp(db)/users", `"..."`, which},
		{"root:secret://@db", `"..."`, which},
		{"mysql://db/users", `"mysql://..."`, escape},
		{"mysql://root:sec@ret?x@db/users", `"mysql://..."`, escape},
		{"mysql://root:sec?x=1&ret@db/users", `"mysql://..."`, escape},
		{"mysql://root:sec/ret@db/users", `"mysql://..."`, escape},
		{"mysql://root:sec#ret@db/users", `"mysql://..."`, escape},
		{"mysql://root:1/sec@db/users", `"mysql://..."`, escape},
		{"mysql://root:sec%zzret@db/users", `"mysql://..."`, escape},
		{"postgres://db/users?password=secret", `"postgres://..."`, escape},
		{"mysql://root:secret@db:3306", `"mysql://..."`, "want the name of a database after the host"},
		{"mysql://root:secret@db:3306/a/b", `"mysql://..."`, "want the name of a database after the host"},
		{"mysql://root:secret@/users", `"mysql://..."`, "want a host"},
		{"mysql://:secret@db/users", `"mysql://..."`, "want a user"},
		{"mysql://root:secret@db/users#x", `"mysql://..."`, "want no #"},
		{"mysql://root:secret@db/users?parseTime=true", `"mysql://..."`, ofM},
		{"mysql://root:secret@db/users?tls=true&tls=false", `"mysql://..."`, ofM},
		{"mysql://root:secret@db/users?sslmode=disable", `"mysql://..."`, ofM},
		{"mysql://root:secret@db/users?a;b", `"mysql://..."`, "the parameters cannot be read"},
		{"postgres://root:secret@db/users?password=secret", `"postgres://..."`, ofP},
		{"postgres://root:secret@db/users?pool_max_conns=3", `"postgres://..."`, ofP},
	} {
		_, err := Open(context.Background(), Options{DSN: tt.dsn})
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("Open(%q) = %v, want ErrUnsupported", tt.dsn, err)
			continue
		}
		if want := "unsupported database " + tt.shown + ": " + tt.why; err.Error() != want {
			t.Errorf("Open(%q):\n got %s\nwant %s", tt.dsn, err, want)
		}
		if strings.Contains(err.Error(), "sec") {
			t.Errorf("Open(%q) shows a password: %s", tt.dsn, err)
		}
	}
}

// Values of parameters that make no sense.
func TestParamsFail(t *testing.T) {
	for _, tt := range []struct{ dsn, want string }{
		{"mysql://u:secret@h/d?tls=maybe", "tls must be true, false, skip-verify or preferred"},
		{"mysql://u:secret@h/d?tls-ca=/x", "tls-ca needs tls=true"},
		{"postgres://u:secret@h/d?sslmode=maybe", "sslmode"},
		{"postgres://u:secret@h/d?default_query_exec_mode=maybe", "default_query_exec_mode"},
	} {
		_, err := Open(context.Background(), Options{DSN: tt.dsn})
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("Open(%q) = %v, want ErrUnsupported with %q", tt.dsn, err, tt.want)
		}
	}
}

func TestHide(t *testing.T) {
	secret := errors.New("login as u:secret refused")
	got := (&target{password: "secret"}).hide(fmt.Errorf("%w", secret))
	if got.Error() != "login as u:... refused" || !errors.Is(got, secret) {
		t.Errorf("got %v", got)
	}
	for _, err := range []error{nil, errors.New("fine")} {
		if got := (&target{password: "secret"}).hide(err); got != err { //nolint:errorlint // the very same
			t.Errorf("hide(%v) = %v", err, got)
		}
	}
}

func TestInMemory(t *testing.T) {
	for dsn, want := range map[string]bool{
		"sqlite::memory:": true, "sqlite:./:memory:": false, "sqlite:x/../:memory:": false, "sqlite:a.db": false,
		"mysql://u:p@h/:memory:": false, "nonsense": false,
	} {
		if InMemory(dsn) != want {
			t.Errorf("InMemory(%q) = %v", dsn, !want)
		}
	}
}

// TestCheckDSN finds, without a connection, what can only be wrong.
func TestCheckDSN(t *testing.T) {
	for _, dsn := range []string{
		"sqlite:", "mysql://u:hunter2/x", "mysql://u:hunter2", "postgres://u:hunter2/x",
		"mysql://u:hunter2@h:99999/x", "mysql://u:hunter2@h:0/x", "mysql://u:hunter2@h/x?tls=maybe",
		"postgres://u:hunter2@h/x?sslmode=wat", "postgres://u:hunter2@h/x?default_query_exec_mode=x",
	} {
		err := CheckDSN(dsn)
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", dsn, err)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v", dsn, err)
		}
	}
	for _, dsn := range []string{"sqlite:a.db", "sqlite::memory:", "mysql://u:p@h/x", "mysql://u:p@h/x?tls=true", "postgres://u:p@h:1/x?sslmode=disable"} {
		if err := CheckDSN(dsn); err != nil {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

// TestFileNamedLikeMemory: a path that only looks like the name of no file is a file.
func TestFileNamedLikeMemory(t *testing.T) {
	t.Chdir(t.TempDir())
	db, err := Open(t.Context(), Options{DSN: "sqlite:./:memory:"})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(":memory:"); err != nil {
		t.Error(err)
	}
}
