package affinity

import (
	"errors"
	"flag"
	"io"
	"testing"
)

func TestCellsText(t *testing.T) {
	for _, tt := range []struct {
		text  string
		n     int
		fixed bool
	}{
		{"auto", 0, false},
		{"off", 1, true},
		{"1", 1, true},
		{"2", 2, true},
		{"1024", 1024, true},
	} {
		c, err := ParseCells(tt.text)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if n, fixed := c.Count(); n != tt.n || fixed != tt.fixed {
			t.Errorf("%q: %d, %v, want %d, %v", tt.text, n, fixed, tt.n, tt.fixed)
		}
		if text, err := c.MarshalText(); err != nil || string(text) != tt.text {
			t.Errorf("%q is written %q, %v", tt.text, text, err)
		}
	}
	if s := (Cells{}).String(); s != "auto" {
		t.Errorf("the zero value is %q, want auto", s)
	}
}

func TestCellsRefused(t *testing.T) {
	for _, text := range []string{
		"", "0", "-1", "+1", "1025", "01x", " 2", "2 ", "AUTO", "on", "1.5", "0x2",
		"4294967297", "18446744073709551617", "9999999999999999999999",
	} {
		c := Cells{n: 7}
		if err := c.Set(text); err == nil {
			t.Errorf("%q is taken as %v", text, c)
		}
		if c.n != 7 {
			t.Errorf("%q changed the value to %v", text, c)
		}
	}
}

func TestCellsFlag(t *testing.T) {
	var byVar, byText Cells
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Var(&byVar, "a", "")
	fs.TextVar(&byText, "b", Cells{}, "")
	if err := fs.Parse([]string{"-a", "off", "-b", "3"}); err != nil {
		t.Fatal(err)
	}
	if byVar.String() != "off" || byText.String() != "3" {
		t.Errorf("got %v and %v, want off and 3", byVar, byText)
	}
	if err := fs.Parse([]string{"-a", "many"}); err == nil {
		t.Errorf("-a many is taken as %v", byVar)
	}
}

func TestPlanErrors(t *testing.T) {
	m := machine(t, "0-3", "4-7")
	if cells, err := m.Plan(Set{}, Cells{}); !errors.Is(err, ErrEmptySet) {
		t.Errorf("no CPUs: %v, %v, want ErrEmptySet", cells, err)
	}
	_, err := m.Plan(set(t, "2-5"), Cells{n: 5})
	var tooMany *TooManyCellsError
	if !errors.As(err, &tooMany) || tooMany.Cells != 5 || tooMany.CPUs != 4 {
		t.Errorf("5 cells on 4 CPUs: %v, want a TooManyCellsError", err)
	}
	if want := "5 cells need at least as many CPUs, there are 4"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
