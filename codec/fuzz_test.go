package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pinion/codec"
)

// hostileStrings seed the string targets: every kind of byte that AppendString
// treats in a way of its own, at and around its eight-byte stride.
func hostileStrings() []string {
	ss := []string{
		"", "a", "Ada Lovelace", "1234567", "12345678", "123456789",
		`"`, `\`, `\u0041`, "</script>&", "\x00", "\b\f\n\r\t", "\x1f", "\x7f",
		"é", "日本語", "👩‍💻", "\u2028\u2029", "\u2027\u202a", "\ufffd", "\ufeff",
		"\xff", "\x80", "\xc0\xaf", "\xe2\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\xffb\xfec",
	}
	for i := range 17 {
		ss = append(ss, strings.Repeat("x", i)+`"`+strings.Repeat("y", 9))
	}
	return ss
}

func FuzzAppendString(f *testing.F) {
	for _, s := range hostileStrings() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		const before = "dst:"
		got := codec.AppendString([]byte(before), s)
		if !bytes.HasPrefix(got, []byte(before)) {
			t.Fatalf("AppendString overwrote its destination: %q", got)
		}
		got = got[len(before):]

		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			t.Fatal(err)
		}
		if want := bytes.TrimSuffix(want.Bytes(), []byte("\n")); !bytes.Equal(got, want) {
			t.Fatalf("AppendString(%q) = %s, encoding/json writes %s", s, got, want)
		}
		if !utf8.Valid(got) {
			t.Fatalf("AppendString(%q) = %q, not UTF-8", s, got)
		}

		var back string
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("AppendString(%q) = %s: %v", s, got, err)
		}
		if want := string([]rune(s)); back != want {
			t.Fatalf("AppendString(%q) reads back as %q, want %q", s, back, want)
		}

		if fromBytes := codec.AppendString(nil, []byte(s)); !bytes.Equal(fromBytes, got) {
			t.Fatalf("AppendString of %q is %s as bytes and %s as a string", s, fromBytes, got)
		}

		// Our own reader must take it too.
		var d codec.Decoder
		v, err := d.Decode(got)
		if err != nil {
			t.Fatalf("Decode(%s): %v", got, err)
		}
		if text, err := v.Text(); err != nil || text != back {
			t.Fatalf("Decode(%s) = %q, %v, want %q", got, text, err, back)
		}
	})
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{
		"", "0", "1", "01", "-1", "+1", " 1", "1 ", "1_000", "0x1", "１", "9223372036854775807",
		"9223372036854775808", "9999999999999999999", "18446744073709551617", "99999999999999999999",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, s []byte) {
		id, ok := codec.ParseID(s)
		want, err := strconv.ParseInt(string(s), 10, 64)
		// strconv also takes signs and leading zeros; writing the number again
		// shows them.
		wantOK := err == nil && want > 0 && strconv.FormatInt(want, 10) == string(s)
		if ok != wantOK {
			t.Fatalf("ParseID(%q) ok = %v, want %v", s, ok, wantOK)
		}
		if ok && id != want || !ok && id != 0 {
			t.Fatalf("ParseID(%q) = %d, want %d", s, id, want)
		}
	})
}

func FuzzAppendTime(f *testing.F) {
	for _, tt := range []time.Time{
		{},
		time.Unix(0, 0), time.Unix(1, 1), time.Unix(-1, 120_000_000),
		time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		f.Add(tt.Unix(), int64(tt.Nanosecond()), 0)
	}
	f.Add(int64(math.MaxInt64), int64(0), 5)
	f.Add(int64(math.MinInt64), int64(0), -5)
	f.Add(int64(0), int64(0), 5*3600+30*60)
	f.Fuzz(func(t *testing.T, sec, nsec int64, offset int) {
		in := time.Unix(sec, nsec).In(time.FixedZone("", offset%(24*3600)))
		got := string(codec.AppendTime(nil, in))
		back, err := time.Parse(`"`+time.RFC3339Nano+`"`, got)
		if err != nil {
			t.Fatalf("AppendTime(%v) = %s: %v", in, got, err)
		}
		switch year := in.UTC().Year(); {
		case year < 0:
			if want := `"0000-01-01T00:00:00Z"`; got != want {
				t.Fatalf("AppendTime(%v) = %s, want %s", in, got, want)
			}
		case year > 9999:
			if want := `"9999-12-31T23:59:59.999999999Z"`; got != want {
				t.Fatalf("AppendTime(%v) = %s, want %s", in, got, want)
			}
		default:
			if want := `"` + in.UTC().Format(time.RFC3339Nano) + `"`; got != want {
				t.Fatalf("AppendTime(%v) = %s, want %s", in, got, want)
			}
			if !back.Equal(in) {
				t.Fatalf("AppendTime(%v) = %s, read back as %v", in, got, back)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, tt := range accepted() {
		f.Add([]byte(tt))
	}
	for _, tt := range refused() {
		f.Add([]byte(tt.body))
	}
	f.Add(lookupBody(100))
	f.Add([]byte(userBody))
	f.Add([]byte(manyKeys(40)))
	f.Add([]byte(`[` + manyKeys(20) + `,` + manyKeys(20) + `]`))

	var d codec.Decoder // one for all: what one document leaves behind must not show in the next
	f.Fuzz(func(t *testing.T, body []byte) {
		kept := bytes.Clone(body)
		v, err := d.Decode(body)
		want, wantErr := oracle(body)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("Decode(%q) error = %v, the oracle's = %v", body, err, wantErr)
		}
		if !bytes.Equal(body, kept) {
			t.Fatalf("Decode changed its body from %q to %q", kept, body)
		}
		if err != nil {
			var se *codec.SyntaxError
			if !errors.As(err, &se) {
				t.Fatalf("Decode(%q) error is a %T: %v", body, err, err)
			}
			if se.Offset < 0 || se.Offset > len(body) || len(se.Reason) > 256 {
				t.Fatalf("Decode(%q) error = %v", body, err)
			}
			if i := strings.IndexFunc(se.Reason, func(r rune) bool { return r < ' ' || r > '~' }); i >= 0 {
				t.Fatalf("Decode(%q) error repeats %q", body, se.Reason)
			}
			return
		}
		same(t, "", v, want)
		same(t, "", v, want) // reading unescapes in place: twice must be the same
	})
}

// same compares a Value with what encoding/json made of the same document.
func same(t *testing.T, path string, v codec.Value, want any) {
	t.Helper()
	check := func(kind codec.Kind, got any, err error) {
		t.Helper()
		if v.Kind() != kind || err != nil || got != want {
			t.Fatalf("at %q: %v %v (%v), want %v", path, v.Kind(), got, err, want)
		}
	}
	switch want := want.(type) {
	case nil:
		check(codec.Null, nil, nil)
	case bool:
		got, err := v.Bool()
		check(codec.Bool, got, err)
	case string:
		got, err := v.Text()
		check(codec.String, got, err)
	case json.Number:
		got, err := v.Int64()
		n, wantErr := strconv.ParseInt(want.String(), 10, 64)
		if v.Kind() != codec.Number || got != n && wantErr == nil || (err == nil) != (wantErr == nil) {
			t.Fatalf("at %q: %v %d (%v), want %s", path, v.Kind(), got, err, want)
		}
	case []any:
		i := 0
		for e := range v.Elements() {
			same(t, path+"/"+strconv.Itoa(i), e, want[i])
			i++
		}
		if v.Kind() != codec.Array || i != len(want) || v.Len() != i {
			t.Fatalf("at %q: %v of %d (Len %d), want %d", path, v.Kind(), i, v.Len(), len(want))
		}
	case map[string]any:
		n := 0
		for key, m := range v.Members() {
			wantMember, ok := want[string(key)]
			if !ok {
				t.Fatalf("at %q: key %q is not there", path, key)
			}
			same(t, path+"/"+string(key), m, wantMember)
			n++
		}
		if v.Kind() != codec.Object || n != len(want) || v.Len() != n {
			t.Fatalf("at %q: %v of %d (Len %d), want %d", path, v.Kind(), n, v.Len(), len(want))
		}
	default:
		t.Fatalf("at %q: the oracle made a %T", path, want)
	}
}

// oracle reads a document with encoding/json and adds the checks that package
// leaves out. It answers as Unmarshal into an any does, with json.Number.
func oracle(body []byte) (any, error) {
	if !json.Valid(body) {
		return nil, errors.New("encoding/json refuses it")
	}
	if !utf8.Valid(body) {
		return nil, errors.New("invalid UTF-8")
	}
	if hasLoneSurrogate(body) {
		return nil, errors.New("lone surrogate")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	v, err := oracleValue(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("trailing text: %w", err)
	}
	return v, nil
}

func oracleValue(dec *json.Decoder, depth int) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if depth == codec.MaxDepth {
		return nil, errors.New("too deep")
	}
	if delim == '[' {
		elements := []any{}
		for dec.More() {
			e, err := oracleValue(dec, depth+1)
			if err != nil {
				return nil, err
			}
			elements = append(elements, e)
		}
		_, err := dec.Token()
		return elements, err
	}
	members := map[string]any{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key := token.(string)
		if _, repeated := members[key]; repeated {
			return nil, fmt.Errorf("repeated key %q", key)
		}
		if members[key], err = oracleValue(dec, depth+1); err != nil {
			return nil, err
		}
	}
	_, err = dec.Token()
	return members, err
}

// hasLoneSurrogate looks for escapes that encoding/json turns into U+FFFD. In a
// valid document a backslash only ever starts an escape.
func hasLoneSurrogate(body []byte) bool {
	unit := func(i int) uint64 {
		if i+6 > len(body) || body[i] != '\\' || body[i+1] != 'u' {
			return 0
		}
		n, _ := strconv.ParseUint(string(body[i+2:i+6]), 16, 16)
		return n
	}
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		switch n := unit(i); {
		case n>>10 == 0xd800>>10 && unit(i+6)>>10 == 0xdc00>>10:
			i += 11
		case n>>11 == 0xd800>>11:
			return true
		default:
			i++
		}
	}
	return false
}
