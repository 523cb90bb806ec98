package codec_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pinion/codec"
)

// lookupBody is the request of POST /api/users/lookup for n ids.
func lookupBody(n int) []byte {
	b := []byte(`{"ids":[`)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = codec.AppendInt(b, int64(100_000+i*37))
	}
	return append(b, "]}"...)
}

// userBody is a request of POST /api/users.
const userBody = `{
	"name": "Ada \"the first\" Lovelace", "email": "ada@example.org", "phone": "+44 20 7946 0000",
	"avatar": "https:\/\/img.example.org\/ada.png", "status": 1, "city_id": 3,
	"address": "12 St James\u2019s Square, 日本 \ud83d\udc69",
	"attributes": {"lang": "en", "plan": "gold", "theme": "dark"}
}`

// manyKeys is an object of n keys.
func manyKeys(n int) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"%x":%d`, i, i)
	}
	b.WriteByte('}')
	return b.String()
}

func nested(open, middle, end string, depth int) string {
	return strings.Repeat(open, depth) + middle + strings.Repeat(end, depth)
}

// accepted lists documents a Decoder takes.
func accepted() []string {
	return []string{
		`null`, `true`, `false`, `0`, `-0`, `1`, `-1`, `10`, `1.5`, `-0.0`, `1e3`, `1E+3`, `0e-1`, `1.25e400`,
		"9223372036854775807", "-9223372036854775808", "9223372036854775808", `123456789012345678901234567890`,
		`""`, `"a"`, `"\"\\\/\b\f\n\r\t"`, `"\u0041\u00e9\u65E5"`, `"\ud83d\udc69"`, `"\uD83D\uDC69!"`, `"é日👩"`, `"\ufffd"`, "\"\ufffd\"", "\"\x7f\"",
		"\"\u2028\u2029\"", `"\u0000"`, "\"\U0010ffff\"", "\"\ufeff\"", `"<&>"`,
		`[]`, `[ ]`, `{}`, `{ }`, `[1,[2,[3]]]`, ` [ 1 , 2 ] `, "\t\r\n{\"a\"\n:\t1}\r\n",
		`{"":0}`, `{"a":1,"A":2}`, `{"a":{"a":{"a":1}},"b":{"a":1}}`, `[{"a":1},{"a":1}]`, `{"a\u0062":1,"ab ":2}`, `{"\ud83d\udc69":1,"\ud83d\udc68":1}`,
		`{"a":"b\"","c":["\\"]}`,
		nested("[", "", "]", codec.MaxDepth), nested(`{"a":`, "1", "}", codec.MaxDepth),
		nested("[", "1", "]", codec.MaxDepth-1), manyKeys(100),
	}
}

// refusal is a document a Decoder refuses, and how.
type refusal struct {
	name   string
	body   string
	offset int
	reason string // how the reason starts
}

func refused() []refusal {
	return []refusal{
		{"empty", ``, 0, "empty document"},
		{"only space", " \n", 2, "empty document"},
		{"byte order mark", "\ufeff{}", 0, "byte order mark"},
		{"UTF-16", "{\x00}\x00", 1, "want a key, got byte 0x00"},
		{"no-break space", "\u00a01", 0, "want a value, got byte 0xc2"},
		{"form feed", "\f1", 0, "want a value, got byte 0x0c"},
		{"trailing text", `{} x`, 3, "text after the end"},
		{"trailing value", `1 2`, 2, "text after the end"},
		{"trailing bracket", `[]]`, 2, "text after the end"},
		{"trailing NUL", "{}\x00", 2, "text after the end"},
		{"NaN", `NaN`, 0, "want a value, got 'N'"},
		{"nan", `[nan]`, 1, "want null"},
		{"Infinity", `-Infinity`, 1, "want a digit, got 'I'"},
		{"capital literal", `True`, 0, "want a value, got 'T'"},
		{"long literal", `nullx`, 4, "text after the end"},
		{"short literal", `tru`, 0, "want true"},
		{"word", `{"a":falsy}`, 5, "want false"},
		{"comment", `{/**/}`, 1, "want a key, got '/'"},
		{"apostrophes", `{'a':1}`, 1, `want a key, got '\''`},
		{"bare key", `{a:1}`, 1, "want a key, got 'a'"},
		{"number as key", `{1:1}`, 1, "want a key, got '1'"},

		{"leading zero", `01`, 0, "leading zero"},
		{"negative leading zero", `[-012]`, 2, "leading zero"},
		{"plus", `+1`, 0, "want a value, got '+'"},
		{"only minus", `-`, 1, "unexpected end"},
		{"no fraction", `1.`, 2, "unexpected end"},
		{"no fraction in array", `[1.]`, 3, "want a digit, got ']'"},
		{"no integer", `.5`, 0, "want a value, got '.'"},
		{"no exponent", `[1e]`, 3, "want a digit, got ']'"},
		{"no signed exponent", `1e+`, 3, "unexpected end"},
		{"hexadecimal", `0x10`, 1, "text after the end"},
		{"underscore", `1_000`, 1, "text after the end"},

		{"open string", `"abc`, 4, "unexpected end inside a string"},
		{"open escape", `"abc\`, 5, "unexpected end inside a string"},
		{"escaped end", `"abc\"`, 6, "unexpected end inside a string"},
		{"tab in string", "\"abc\tdef\"", 4, "control character (byte 0x09)"},
		{"NUL in key", "{\"a\x00\":1}", 3, "control character (byte 0x00)"},
		{"unknown escape", `"\x41"`, 1, `unknown escape \ before 'x'`},
		{"escaped apostrophe", `"\'"`, 1, `unknown escape`},
		{"short \\u", `"\u12"`, 1, `\u without four hexadecimal digits`},
		{"bad \\u", `"ab\u12g4"`, 3, `\u without four hexadecimal digits`},
		{"capital \\U", `"\U0041"`, 1, `unknown escape`},
		{"lone high surrogate", `"ab\ud83d"`, 3, "lone surrogate"},
		{"lone low surrogate", `"\udc69"`, 1, "lone surrogate"},
		{"high surrogate and letter", `"\ud800\u0041"`, 1, "lone surrogate"},
		{"two high surrogates", `"\ud800\ud800"`, 1, "lone surrogate"},
		{"surrogates swapped", `"\udc69\ud83d"`, 1, "lone surrogate"},
		{"surrogate in key", `{"\ud800":1}`, 2, "lone surrogate"},

		{"stray continuation", "\"a\x80\"", 2, "invalid UTF-8 (byte 0x80)"},
		{"0xff", "\"1234567\xff\"", 8, "invalid UTF-8 (byte 0xff)"},
		{"overlong two", "\"\xc0\xaf\"", 1, "invalid UTF-8 (byte 0xc0)"},
		{"overlong three", "\"\xe0\x80\xaf\"", 1, "invalid UTF-8"},
		{"overlong four", "\"\xf0\x80\x80\xaf\"", 1, "invalid UTF-8"},
		{"surrogate code point", "\"\xed\xa0\x80\"", 1, "invalid UTF-8"},
		{"above U+10FFFF", "\"\xf4\x90\x80\x80\"", 1, "invalid UTF-8"},
		{"cut rune", "\"\xe2\x82\"", 1, "invalid UTF-8"},
		{"cut rune at the end", "\"\xf0\x9f\x91", 1, "invalid UTF-8"},

		{"open array", `[1`, 2, "unexpected end"},
		{"open array after comma", `[1,`, 3, "unexpected end"},
		{"trailing comma", `[1,]`, 3, "want a value, got ']'"},
		{"leading comma", `[,1]`, 1, "want a value, got ','"},
		{"no comma", `[1 2]`, 3, "want a comma or ], got '2'"},
		{"wrong bracket", `[1}`, 2, "want a comma or ], got '}'"},
		{"open object", `{`, 1, "unexpected end"},
		{"no colon", `{"a" 1}`, 5, "want a colon, got '1'"},
		{"end before colon", `{"a"`, 4, "unexpected end"},
		{"end after colon", `{"a":`, 5, "unexpected end"},
		{"trailing comma in object", `{"a":1,}`, 7, "want a key, got '}'"},
		{"no comma in object", `{"a":1 "b":2}`, 7, `want a comma or }, got '"'`},
		{"two colons", `{"a"::1}`, 5, "want a value, got ':'"},

		{"repeated key", `{"name":1,"name":2}`, 10, `repeated key "name"`},
		{"repeated empty key", `{"":1,"":2}`, 6, `repeated key ""`},
		{"repeated key below", `[{"a":{"b":1,"c":[],"b":3}}]`, 20, `repeated key "b"`},
		{"repeated after object", `{"a":{"a":1},"a":2}`, 13, `repeated key "a"`},
		{"repeated in capitals of an escape", `{"a":1,"\u0061":2}`, 7, `repeated key "a"`},
		{"repeated escape first", `{"\u0061":1,"a":2}`, 12, `repeated key "a"`},
		{"repeated escapes", `{"\n":1,"\u000A":2}`, 8, `repeated key "\n"`},
		{"repeated pair", `{"👩":1,"\ud83d\udc69":2}`, 10, `repeated key "\U0001f469"`},
		{"repeated slash", `{"/":1,"\/":2}`, 7, `repeated key "/"`},
		{"repeated long key", `{"` + strings.Repeat("k", 99) + `":1,"` + strings.Repeat("k", 99) + `":2}`, 105, `repeated key "` + strings.Repeat("k", 32) + `..."`},
		{"repeated beyond few", strings.TrimSuffix(manyKeys(17), "}") + `,"0":1}`, len(manyKeys(17)), `repeated key "0"`},
		{"repeated last of many", strings.TrimSuffix(manyKeys(500), "}") + `,"1f\u0033":1}`, len(manyKeys(500)), `repeated key "1f3"`},
		{"repeated in second large", `[` + manyKeys(20) + `,` + strings.TrimSuffix(manyKeys(20), "}") + `,"3":1}]`, 2 * (1 + len(manyKeys(20))), `repeated key "3"`},

		{"too many arrays", nested("[", "", "]", codec.MaxDepth+1), 32, "nested too deeply"},
		{"too many objects", nested(`{"a":`, "1", "}", codec.MaxDepth+1), 160, "nested too deeply"},
		{"10,000 brackets", strings.Repeat("[", 10_000), 32, "nested too deeply"},
	}
}

func TestDecodeAccepts(t *testing.T) {
	var d codec.Decoder
	for _, body := range accepted() {
		v, err := d.Decode([]byte(body))
		if err != nil {
			t.Errorf("Decode(%q): %v", body, err)
			continue
		}
		want, err := oracle([]byte(body))
		if err != nil {
			t.Errorf("the oracle refuses %q: %v", body, err)
			continue
		}
		same(t, "", v, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	var d codec.Decoder
	for _, tt := range refused() {
		t.Run(tt.name, func(t *testing.T) {
			_, err := d.Decode([]byte(tt.body))
			var se *codec.SyntaxError
			if !errors.As(err, &se) {
				t.Fatalf("error = %v, want a SyntaxError", err)
			}
			if se.Offset != tt.offset || !strings.HasPrefix(se.Reason, tt.reason) {
				t.Errorf("error = %v, want at byte %d: %s", se, tt.offset, tt.reason)
			}
			// The fault must not stay behind.
			if _, err := d.Decode([]byte(`{"a":[{"b":1}]}`)); err != nil {
				t.Errorf("the next document: %v", err)
			}
		})
	}
}

func TestSyntaxErrorText(t *testing.T) {
	var d codec.Decoder
	_, err := d.Decode([]byte(`{"name":"a","name":"b"}`))
	if got, want := fmt.Sprint(err), `at byte 12: repeated key "name"`; got != want {
		t.Errorf("error = %s, want %s", got, want)
	}
}

func TestInt64(t *testing.T) {
	for body, want := range map[string]int64{
		"0": 0, "-0": 0, "7": 7, "-7": -7, "123456789012345678": 123456789012345678,
		"9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
	} {
		var d codec.Decoder
		v, err := d.Decode([]byte(body))
		if err != nil {
			t.Fatalf("Decode(%s): %v", body, err)
		}
		if got, err := v.Int64(); err != nil || got != want {
			t.Errorf("Int64 of %s = %d, %v", body, got, err)
		}
		if err := v.Expect(codec.Integer); err != nil {
			t.Errorf("Expect(Integer) of %s: %v", body, err)
		}
	}
}

func TestTypeErrors(t *testing.T) {
	asInt := func(v codec.Value) error { _, err := v.Int64(); return err }
	asText := func(v codec.Value) error { _, err := v.Text(); return err }
	asBytes := func(v codec.Value) error { _, err := v.Bytes(); return err }
	asBool := func(v codec.Value) error { _, err := v.Bool(); return err }
	asArray := func(v codec.Value) error { return v.Expect(codec.Array) }
	asInteger := func(v codec.Value) error { return v.Expect(codec.Integer) }
	const integer = "want a 64-bit integer in plain digits, got "
	for _, tt := range []struct {
		body string
		read func(codec.Value) error
		want string
	}{
		{`"1"`, asInt, integer + "a string"},
		{`null`, asInt, integer + "null"},
		{`true`, asInt, integer + "a boolean"},
		{`[1]`, asInteger, integer + "an array"},
		{`1.0`, asInt, integer + "1.0"},
		{`1e3`, asInteger, integer + "1e3"},
		{`-0.0`, asInt, integer + "-0.0"},
		{`9223372036854775808`, asInt, integer + "9223372036854775808"},
		{`-9223372036854775809`, asInt, integer + "-9223372036854775809"},
		{strings.Repeat("9", 100), asInt, integer + strings.Repeat("9", 32) + "..."},
		{`1`, asText, "want a string, got a number"},
		{`{}`, asBytes, "want a string, got an object"},
		{`0`, asBool, "want a boolean, got a number"},
		{`{}`, asArray, "want an array, got an object"},
	} {
		var d codec.Decoder
		v, err := d.Decode([]byte(tt.body))
		if err != nil {
			t.Fatalf("Decode(%s): %v", tt.body, err)
		}
		err = tt.read(v)
		var te *codec.TypeError
		if !errors.As(err, &te) || te.Error() != tt.want {
			t.Errorf("reading %s: %v, want %s", tt.body, err, tt.want)
		}
	}
}

// TestLoopsOfOthers shows that ranging over a value of another kind is safe.
func TestLoopsOfOthers(t *testing.T) {
	var d codec.Decoder
	for _, body := range []string{`null`, `true`, `1`, `"abc"`} {
		v, err := d.Decode([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		for range v.Elements() {
			t.Errorf("%s has an element", body)
		}
		for range v.Members() {
			t.Errorf("%s has a member", body)
		}
		if v.Len() != 0 {
			t.Errorf("%s has length %d", body, v.Len())
		}
	}
	if zero := (codec.Value{}); zero.Kind() != codec.Null || zero.Len() != 0 {
		t.Errorf("the zero Value is %v of length %d", zero.Kind(), zero.Len())
	}
}

func TestLoopsStop(t *testing.T) {
	var d codec.Decoder
	v, err := d.Decode([]byte(`{"a":1,"b":2,"c":[1,2,3]}`))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for key := range v.Members() {
		n++
		if string(key) == "b" {
			break
		}
	}
	if n != 2 {
		t.Errorf("the loop over members ran %d times, want 2", n)
	}
	for key, m := range v.Members() {
		if string(key) != "c" {
			continue
		}
		n = 0
		for range m.Elements() {
			n++
			break
		}
		if n != 1 {
			t.Errorf("the loop over elements ran %d times, want 1", n)
		}
	}
}

// TestDecodeCopies shows who owns what: the body may change at once, a Text
// outlives the document, and a view does not.
func TestDecodeCopies(t *testing.T) {
	var d codec.Decoder
	body := []byte(`"first\n"`)
	v, err := d.Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	copy(body, "XXXXXXXXX")
	text, err := v.Text()
	if err != nil || text != "first\n" {
		t.Fatalf("Text = %q, %v after the body has changed", text, err)
	}
	if _, err := d.Decode([]byte(`"other\t"`)); err != nil {
		t.Fatal(err)
	}
	if text != "first\n" {
		t.Errorf("Text = %q after the next Decode", text)
	}
}
