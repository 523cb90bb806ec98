package accesslog

import (
	"encoding"
	"flag"
	"testing"
)

var (
	_ flag.Value               = new(Mode)
	_ encoding.TextMarshaler   = Mode{}
	_ encoding.TextUnmarshaler = new(Mode)
)

func TestMode(t *testing.T) {
	for _, s := range []string{"off", "all", "errors", "1/1", "1/1000", "1/9223372036854775807"} {
		var m Mode
		if err := m.UnmarshalText([]byte(s)); err != nil {
			t.Errorf("%q: %v", s, err)
		}
		if got, _ := m.MarshalText(); string(got) != s {
			t.Errorf("%q became %q", s, got)
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
		m := Errors()
		if err := m.Set(s); err == nil {
			t.Errorf("%q was taken as %v", s, m)
		}
		if m != Errors() {
			t.Errorf("%q changed the mode to %v", s, m)
		}
	}
}
