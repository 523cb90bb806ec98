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
