package main

import (
	"slices"
	"strings"
	"testing"
)

func TestParseIDs(t *testing.T) {
	ids, err := parseIDs("3,1,3,9223372036854775807")
	if err != nil || !slices.Equal(ids, []int64{3, 1, 9223372036854775807}) {
		t.Errorf("got %v, %v", ids, err)
	}
	for _, wrong := range []string{"", "0", "-1", "1,", "x", "9223372036854775808", strings.Repeat("1,", 256) + "1"} {
		if ids, err := parseIDs(wrong); err == nil {
			t.Errorf("%.20q: got %v", wrong, ids)
		}
	}
}

func TestMySQLDSN(t *testing.T) {
	dsn, err := mysqlDSN("mysql://pinion:secret@127.0.0.1:3306/users")
	if want := "pinion:secret@tcp(127.0.0.1:3306)/users?interpolateParams=true"; err != nil || dsn != want {
		t.Errorf("got %s, %v, want %s", dsn, err, want)
	}
	for _, wrong := range []string{"", "postgres://a:b@c/d", "mysql://c/d", "mysql://a:b@c"} {
		if dsn, err := mysqlDSN(wrong); err == nil {
			t.Errorf("%q: got %s", wrong, dsn)
		}
	}
}
