package codec_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"pinion/codec"
)

func TestAppendString(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", `""`},
		{"Ada", `"Ada"`},
		{`say "hi"`, `"say \"hi\""`},
		{`C:\`, `"C:\\"`},
		{"\b\f\n\r\t", `"\b\f\n\r\t"`},
		{"\x00\x01\x0b\x1f", `"\u0000\u0001\u000b\u001f"`},
		{"\x7f", "\"\x7f\""},
		{"<a href='/'>&</a>", `"<a href='/'>&</a>"`},
		{"Zoë 日本 👩", `"Zoë 日本 👩"`},
		{"\u2028|\u2029", `"\u2028|\u2029"`},
		{"\ufffd", "\"\ufffd\""},
		{"a\xffb", `"a\ufffdb"`},
		{"\xed\xa0\x80", `"\ufffd\ufffd\ufffd"`},
		{"\xf0\x9f\x91", `"\ufffd\ufffd\ufffd"`},
	} {
		if got := string(codec.AppendString(nil, tt.in)); got != tt.want {
			t.Errorf("AppendString(%q) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

// TestAppendStringEveryByte puts each byte at each place of the eight-byte
// stride, into a destination that is exactly large enough and one that grows.
func TestAppendStringEveryByte(t *testing.T) {
	var d codec.Decoder
	for c := range 256 {
		for at := range 20 {
			in := strings.Repeat("x", at) + string([]byte{byte(c)}) + strings.Repeat("y", 19-at)
			want := strings.ToValidUTF8(in, "\ufffd")
			for _, room := range []int{0, len(in), 200} {
				out := codec.AppendString(make([]byte, 0, room), in)
				v, err := d.Decode(out)
				if err != nil {
					t.Fatalf("AppendString(%q) = %s: %v", in, out, err)
				}
				if got, err := v.Text(); err != nil || got != want {
					t.Fatalf("AppendString(%q) reads back as %q, %v", in, got, err)
				}
			}
		}
	}
}

// TestAppendStringTypes names the kinds of argument there are.
func TestAppendStringTypes(t *testing.T) {
	type name string
	type raw []byte
	got := codec.AppendString(nil, "a\n")
	got = codec.AppendString(got, name("b\xff"))
	got = codec.AppendString(got, []byte("c"))
	got = codec.AppendString(got, raw("d\u2028"))
	got = codec.AppendString(got, []byte(nil))
	if want := `"a\n""b\ufffd""c""d\u2028"""`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAppendTime(t *testing.T) {
	delhi := time.FixedZone("", 5*3600+1800)
	for _, tt := range []struct {
		in   time.Time
		want string
	}{
		{time.Time{}, `"0001-01-01T00:00:00Z"`},
		{time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC), `"2026-01-02T15:04:05Z"`},
		{time.Date(2026, 1, 2, 15, 4, 5, 120_000_000, time.UTC), `"2026-01-02T15:04:05.12Z"`},
		{time.Date(2026, 1, 2, 15, 4, 5, 1, time.UTC), `"2026-01-02T15:04:05.000000001Z"`},
		{time.Date(2026, 1, 1, 1, 0, 0, 0, delhi), `"2025-12-31T19:30:00Z"`},
		{time.Date(-44, 3, 15, 12, 0, 0, 0, time.UTC), `"0000-01-01T00:00:00Z"`},
		{time.Date(0, 1, 1, 0, 0, 0, 0, delhi), `"0000-01-01T00:00:00Z"`},
		{time.Date(10000, 1, 1, 0, 0, 0, 0, delhi), `"9999-12-31T18:30:00Z"`},
		{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), `"9999-12-31T23:59:59.999999999Z"`},
	} {
		if got := string(codec.AppendTime(nil, tt.in)); got != tt.want {
			t.Errorf("AppendTime(%v) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestAppendScalars(t *testing.T) {
	got := codec.AppendInt(nil, math.MinInt64)
	got = codec.AppendBool(append(got, ' '), true)
	got = codec.AppendInt(append(got, ' '), 0)
	got = codec.AppendBool(append(got, ' '), false)
	if want := "-9223372036854775808 true 0 false"; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestParseID(t *testing.T) {
	for in, want := range map[string]int64{
		"1": 1, "42": 42, "999999": 999999, "9223372036854775807": math.MaxInt64,
	} {
		if got, ok := codec.ParseID([]byte(in)); !ok || got != want {
			t.Errorf("ParseID(%q) = %d, %v", in, got, ok)
		}
	}
}

func TestParseIDRefuses(t *testing.T) {
	for _, in := range []string{
		"", "0", "00", "01", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x1", "1_0", "a", "１", "\x00",
		"9223372036854775808", "9999999999999999999", "18446744073709551617", "100000000000000000000",
	} {
		if got, ok := codec.ParseID([]byte(in)); ok || got != 0 {
			t.Errorf("ParseID(%q) = %d, %v", in, got, ok)
		}
	}
}

func TestViews(t *testing.T) {
	b := []byte("abc")
	if s := codec.StringView(b); s != "abc" {
		t.Errorf("StringView = %q", s)
	}
	if v := codec.BytesView("abc"); string(v) != "abc" || cap(v) != 3 {
		t.Errorf("BytesView = %q, capacity %d", v, cap(v))
	}
	if s, v := codec.StringView(nil), codec.BytesView(""); s != "" || len(v) != 0 {
		t.Errorf("views of nothing are %q and %q", s, v)
	}
}
