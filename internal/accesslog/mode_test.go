package accesslog

import (
	"testing"
)

func TestMode(t *testing.T) {
	for _, s := range []string{"off", "all", "errors", "1/1", "1/1000", "1/9223372036854775807"} {
		m, err := ParseMode(s)
		if err != nil || m.String() != s {
			t.Errorf("%q became %q, %v", s, m, err)
		}
	}
	if s := (Mode{}).String(); s != "off" {
		t.Errorf("the zero value is %q", s)
	}
}

func TestModeRefuses(t *testing.T) {
	for _, s := range []string{
		"", "on", "All", " all", "1", "1/", "1/0", "1/-1", "1/+1", "1/x", "2/3", "1/1/1", "1/1.5", "1/18446744073709551616",
	} {
		if m, err := ParseMode(s); err == nil {
			t.Errorf("%q was taken as %v", s, m)
		}
	}
}
