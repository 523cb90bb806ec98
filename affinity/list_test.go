package affinity

import (
	"encoding"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
)

var (
	_ encoding.TextMarshaler   = Set{}
	_ encoding.TextUnmarshaler = (*Set)(nil)
	_ encoding.TextMarshaler   = List{}
	_ encoding.TextUnmarshaler = (*List)(nil)
	_ flag.Value               = (*List)(nil)
)

func TestParseSet(t *testing.T) {
	tests := []struct{ list, want string }{
		{"", ""},
		{"\n", ""},
		{" ,\t,\n\n", ""},
		{"0", "0"},
		{"0-7", "0-7"},
		{"0-7\n", "0-7"},
		{"0-7,16-23", "0-7,16-23"},
		{"16-23,0-7", "0-7,16-23"},
		{"0-3,4-7,8", "0-8"},
		{"3,3,3", "3"},
		{"5-5", "5"},
		{"0,1", "0-1"},
		{"007", "7"},
		{" 0 , 2\t4,,6\r\n", "0,2,4,6"},
		{"0-31:2/4", "0-1,4-5,8-9,12-13,16-17,20-21,24-25,28-29"},
		{"1-10:1/3", "1,4,7,10"},
		{"0-3:1/1", "0-3"},
		{"0-4:3/4", "0-2,4"}, // the last group is cut off
		{"0-3:2/100", "0-1"},
		{"0-3:100/100", "0-3"},
		{"5-9:1/4294967295", "5"},
		{"0-3:0/4", ""}, // none of every four: the kernel takes it
		{"1023-1025", "1023-1025"},
		{"8191", "8191"},
		{"65535", "65535"},
		{"0-65535", "0-65535"},
	}
	for _, tt := range tests {
		s, err := ParseSet(tt.list)
		if err != nil || s.String() != tt.want {
			t.Errorf("ParseSet(%q) = %q, %v, want %q", tt.list, s, err, tt.want)
		}
	}
}

func TestParseSetErrors(t *testing.T) {
	tests := []struct {
		list   string
		token  string
		offset int
		reason string
	}{
		{"0-", "0-", 0, "no end"},
		{"-1", "-1", 0, "no start"},
		{"-", "-", 0, "no start"},
		{"0-3,7-4", "7-4", 4, "reversed"},
		{"0-3:5/4", "0-3:5/4", 0, "more CPUs used"},
		{"0-3:2/0", "0-3:2/0", 0, "group of 0"},
		{"0-3:0/0", "0-3:0/0", 0, "group of 0"},
		{"0-3:2", "0-3:2", 0, "used/group"},
		{"0-3:", "0-3:", 0, "used/group"},
		{"0-3:/4", "0-3:/4", 0, "a number is missing"},
		{"0-3:2/", "0-3:2/", 0, "a number is missing"},
		{"0-3:2/4/8", "0-3:2/4/8", 0, "not a number"},
		{"0-3:2/4:1/2", "0-3:2/4:1/2", 0, "not a number"},
		{"4:1/2", "4:1/2", 0, "needs a range"},
		{"1-2-3", "1-2-3", 0, "not a number"},
		{"0 - 3", "-", 2, "no start"},
		{"0, 1, x", "x", 6, "not a number"},
		{"+1", "+1", 0, "not a number"},
		{"0x10", "0x10", 0, "not a number"},
		{"1_0", "1_0", 0, "not a number"},
		{"1;2", "1;2", 0, "not a number"},
		{"1.5", "1.5", 0, "not a number"},
		{"٣", "٣", 0, "not a number"},
		{"0\x00", "0\x00", 0, "not a number"},
		{"0\xa0", "0\xa0", 0, "not a number"},
		{"all", "all", 0, "write it out"},
		{"ALL:1/2", "ALL:1/2", 0, "write it out"},
		{"0-N", "0-N", 0, "write it out"},
		{"N", "N", 0, "write it out"},
		{"0-3\n5", "5", 4, "end of the line"},
		{"\n0-3", "0-3", 1, "end of the line"},
		{"0-3 \n,5,6", "5", 6, "end of the line"},
		{"65536", "65536", 0, "above 65535"},
		{"0,1-4294967295", "1-4294967295", 2, "above 65535"},
		{"4294967296", "4294967296", 0, "too large"},
		{"1-9223372036854775807", "1-9223372036854775807", 0, "too large"},
		{"1-18446744073709551617", "1-18446744073709551617", 0, "too large"},
		{"0-3:1/4294967296", "0-3:1/4294967296", 0, "too large"},
		{strings.Repeat("9", 100), strings.Repeat("9", 100), 0, "too large"},
	}
	for _, tt := range tests {
		s, err := ParseSet(tt.list)
		var pe *ParseError
		if !errors.As(err, &pe) {
			t.Errorf("ParseSet(%q) = %q, %v, want a ParseError", tt.list, s, err)
			continue
		}
		if pe.Token != tt.token || pe.Offset != tt.offset || !strings.Contains(pe.Reason, tt.reason) {
			t.Errorf("ParseSet(%q): token %q at %d, %q; want %q at %d, %q",
				tt.list, pe.Token, pe.Offset, pe.Reason, tt.token, tt.offset, tt.reason)
		}
		if !s.Empty() {
			t.Errorf("ParseSet(%q) gave %q beside its error", tt.list, s)
		}
	}
}

func TestParseErrorText(t *testing.T) {
	_, err := ParseSet("0-3,0-")
	const want = `CPU list: "0-" at byte 4: the range has no end`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = ParseSet(strings.Repeat("\x1b", 1<<20))
	if err == nil || len(err.Error()) > 300 || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("the text of a hostile token has %d bytes, or raw ones", len(err.Error()))
	}
}

func TestListIn(t *testing.T) {
	tests := []struct{ list, allowed, want string }{
		{"all", "0-3,8", "0-3,8"},
		{"ALL", "4-7", "4-7"},
		{"all:2/4", "0-7", "0-1,4-5"},
		{"all:2/4", "1-5,7", "1,4-5"}, // by number, not by place
		{"all:0/4", "0-7", ""},
		{"N", "0-7", "7"},
		{"N", "2,64,1024", "1024"},
		{"0-N", "0-7", "0-7"},
		{"0-N", "3,5", "0-5"}, // named, allowed or not
		{"0-N:1/2", "0-7", "0,2,4,6"},
		{"N-N", "0-7", "7"},
		{"64-N", "0-7", "64"},
		{"0-1,N,all:1/4", "0-9", "0-1,4,8-9"},
		{"0-3,99\n", "0-1", "0-3,99"},
		{"5", "", "5"},
		{"all", "", ""},
		{"N", "", ""},
		{"0-N", "", "0"},
		{"", "0-7", ""},
		{"\n", "0-7", ""},
	}
	for _, tt := range tests {
		l, err := ParseList(tt.list)
		if err != nil {
			t.Errorf("ParseList(%q): %v", tt.list, err)
			continue
		}
		if got := l.In(set(t, tt.allowed)); got.String() != tt.want || !got.Equal(set(t, tt.want)) {
			t.Errorf("%q in %q = %q, want %q", tt.list, tt.allowed, got, tt.want)
		}
	}
	if got := (List{}).In(set(t, "1-2")); got.String() != "1-2" {
		t.Errorf("the zero value in 1-2 = %q", got)
	}
}

// Beyond what is wrong in a set too.
func TestParseListErrors(t *testing.T) {
	tests := []struct {
		list   string
		token  string
		offset int
		reason string
	}{
		{"0,N-5", "N-5", 2, "reversed"},
		{"n", "n", 0, "not a number"},
		{"0-NN", "0-NN", 0, "not a number"},
		{"all:N/4", "all:N/4", 0, "not a number"},
		{"all:1/N", "all:1/N", 0, "not a number"},
		{"all:2", "all:2", 0, "used/group"},
		{"all:", "all:", 0, "used/group"},
		{"all-3", "all-3", 0, "not a number"},
		{"0-all", "0-all", 0, "not a number"},
		{"allN", "allN", 0, "not a number"},
		{"N:1/2", "N:1/2", 0, "needs a range"},
		{"-N", "-N", 0, "no start"},
		{"N-", "N-", 0, "no end"},
		{"65536-N", "65536-N", 0, "above 65535"},
		{"all\nall", "all", 4, "end of the line"},
		{"18446744073709551615", "18446744073709551615", 0, "too large"}, // what N is inside
		{"0-18446744073709551615", "0-18446744073709551615", 0, "too large"},
	}
	for _, tt := range tests {
		l, err := ParseList(tt.list)
		var pe *ParseError
		if !errors.As(err, &pe) {
			t.Errorf("ParseList(%q) = %q, %v, want a ParseError", tt.list, l, err)
			continue
		}
		if pe.Token != tt.token || pe.Offset != tt.offset || !strings.Contains(pe.Reason, tt.reason) {
			t.Errorf("ParseList(%q): token %q at %d, %q; want %q at %d, %q",
				tt.list, pe.Token, pe.Offset, pe.Reason, tt.token, tt.offset, tt.reason)
		}
	}
}

func TestListEmpty(t *testing.T) {
	tests := []struct {
		list string
		want bool
	}{
		{"", true},
		{"\n", true},
		{" ,", true},
		{"0-3:0/4", true},
		{"0-3:0/4,all:0/1", true},
		{"0-3:0/4,7", false},
		{"all", false},
		{"N", false},
		{"64-N", false},
	}
	for _, tt := range tests {
		l, err := ParseList(tt.list)
		if err != nil || l.Empty() != tt.want {
			t.Errorf("%q: Empty() = %v, %v, want %v", tt.list, l.Empty(), err, tt.want)
		}
	}
	if (List{}).Empty() {
		t.Error("the zero value is empty, want all")
	}
}

func TestListText(t *testing.T) {
	tests := []struct{ list, want string }{
		{"All", "all"},
		{"", ""},
		{" 16-23 , 0-07\n", "16-23,0-7"},
		{"5-5", "5"},
		{"5-5:1/2", "5-5:1/2"},
		{"64-N:02/4,N-N,all:1/2", "64-N:2/4,N,all:1/2"},
	}
	for _, tt := range tests {
		l, err := ParseList(tt.list)
		if err != nil || l.String() != tt.want {
			t.Errorf("ParseList(%q) = %q, %v, want %q", tt.list, l, err, tt.want)
		}
	}
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	var help strings.Builder
	flags.SetOutput(&help)
	var cpus List
	flags.Var(&cpus, "cpus", "CPUs to run on")
	flags.PrintDefaults()
	if strings.Contains(help.String(), "default") {
		t.Errorf("the zero value is not taken for the default: %s", help.String())
	}
	if err := flags.Parse([]string{"-cpus", "0-N"}); err != nil || cpus.String() != "0-N" {
		t.Errorf("flag: %v, %v", cpus, err)
	}
	if err := flags.Parse([]string{"-cpus", "3-0"}); err == nil || cpus.String() != "0-N" {
		t.Errorf("a wrong flag: %v, %v; want an error and the old value", cpus, err)
	}
	text, err := List{}.MarshalText()
	if err != nil || string(text) != "all" {
		t.Errorf("MarshalText() of the zero value = %q, %v", text, err)
	}
}

func TestSetText(t *testing.T) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var cpus Set
	flags.TextVar(&cpus, "cpus", Set{}, "CPUs to run on")
	if err := flags.Parse([]string{"-cpus", "8,0-3"}); err != nil || cpus.String() != "0-3,8" {
		t.Errorf("flag: %v, %v", cpus, err)
	}
	if err := flags.Parse([]string{"-cpus", "3-0"}); err == nil || cpus.String() != "0-3,8" {
		t.Errorf("a wrong flag: %v, %v; want an error and the old value", cpus, err)
	}
	text, err := cpus.MarshalText()
	if err != nil || string(text) != "0-3,8" {
		t.Errorf("MarshalText() = %q, %v", text, err)
	}
}
