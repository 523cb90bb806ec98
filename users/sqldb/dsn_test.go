package sqldb

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestParseDSN(t *testing.T) {
	for _, tt := range []struct{ dsn, want string }{
		{"sqlite:pinion.db", "pinion.db"},
		{"sqlite::memory:", ":memory:"},
		{"sqlite:/var/lib/pinion/users.db", "/var/lib/pinion/users.db"},
		{"sqlite:///var/users.db", "/var/users.db"},
		{"sqlite:./a/../b.db", "b.db"},
		{"sqlite:what?mode=ro#1.db", "what?mode=ro#1.db"},
	} {
		got, err := parseDSN(tt.dsn)
		if err != nil || got != tt.want {
			t.Errorf("parseDSN(%q) = %q, %v; want %q", tt.dsn, got, err, tt.want)
		}
	}
}

func TestParseDSNFails(t *testing.T) {
	for _, tt := range []struct{ dsn, shown string }{
		{"ftp://x", `"ftp://x"`},
		{"", `""`},
		{"pinion.db", `"pinion.db"`},
		{"sqlite:", `"sqlite:"`},
		{"sqlite:a\x00b", `"sqlite:a\x00b"`},
		{"mysql://root:secret@db:3306/users", `"mysql://..."`},
		{"mysql://root:sec@ret?x@db/users", `"mysql://..."`},
		{"postgres://db/users?password=secret", `"postgres://..."`},
		{"root:secret@tcp(db)/users", `"..."`},
		{"root:secret://@db", `"..."`},
	} {
		_, err := Open(context.Background(), Options{DSN: tt.dsn})
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("Open(%q) = %v, want ErrUnsupported", tt.dsn, err)
			continue
		}
		want := "unsupported database " + tt.shown + ": want sqlite:FILE or sqlite::memory:"
		if err.Error() != want {
			t.Errorf("Open(%q):\n got %s\nwant %s", tt.dsn, err, want)
		}
		if strings.Contains(err.Error(), "sec") {
			t.Errorf("Open(%q) shows a password: %s", tt.dsn, err)
		}
	}
}
