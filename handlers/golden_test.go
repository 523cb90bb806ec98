package handlers_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pinion/handlers"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden from what the API answers now")

// request builds the bytes of one request. The id makes answers repeatable.
func request(method, target, body string, headers ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: pinion.test\r\nX-Request-Id: golden\r\n", method, target)
	for _, h := range headers {
		b.WriteString(h + "\r\n")
	}
	if body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	return b.String() + "\r\n" + body
}

const (
	auth     = "Authorization: Bearer token123"
	jsonBody = "Content-Type: application/json"
)

// goldenCases are one request each, on a server of its own with 20 demo users,
// whose clock stands still.
var goldenCases = []struct{ name, request string }{
	{"ping", request("GET", "/api/ping", "")},
	{"ping_head", request("HEAD", "/api/ping", "")},
	{"ping_query", request("GET", "/api/ping?x=1", "")},
	{"ping_absolute_uri", request("GET", "http://pinion.test/api/ping", "")},
	{"ping_http10", "GET /api/ping HTTP/1.0\r\n\r\n"},
	{"health", request("GET", "/health", "")},
	{"ready", request("GET", "/ready", "")},
	{"ready_no_database", request("GET", "/ready", "")},
	{"ready_draining", request("GET", "/ready", "")},

	{"user", request("GET", "/api/users/1", "")},
	{"user_head", request("HEAD", "/api/users/1", "")},
	{"user_query", request("GET", "/api/users/2?x=1", "")},
	{"user_absolute_uri", request("GET", "http://pinion.test/api/users/1", "")},
	{"user_missing", request("GET", "/api/users/999999", "")},
	{"user_missing_head", request("HEAD", "/api/users/999999", "")},
	{"user_zero", request("GET", "/api/users/0", "")},
	{"user_negative", request("GET", "/api/users/-1", "")},
	{"user_leading_zero", request("GET", "/api/users/01", "")},
	{"user_plus", request("GET", "/api/users/+1", "")},
	{"user_fraction", request("GET", "/api/users/1.0", "")},
	{"user_word", request("GET", "/api/users/me", "")},
	{"user_overflow", request("GET", "/api/users/9223372036854775808", "")},
	{"user_largest", request("GET", "/api/users/9223372036854775807", "")},
	{"user_escaped", request("GET", "/api/users/%31", "")},
	{"user_empty", request("GET", "/api/users/", "")},
	{"user_put", request("PUT", "/api/users/1", "{}", auth, jsonBody)},
	{"user_options", request("OPTIONS", "/api/users/1", "")},
	{"user_bad_timeout", request("GET", "/api/users/1", "", "X-Request-Timeout-Ms: soon")},
	{"user_huge_timeout", request("GET", "/api/users/1", "", "X-Request-Timeout-Ms: 9223372036854775807")},
	{"user_no_database", request("GET", "/api/users/1", "")},
	{"user_degraded", request("GET", "/api/users/1", "")},
	{"user_no_time", request("GET", "/api/users/1", "", "X-Request-Timeout-Ms: 0")},

	{"users", request("GET", "/api/users?ids=1,2,999999", "")},
	{"users_head", request("HEAD", "/api/users?ids=1,2,999999", "")},
	{"users_order", request("GET", "/api/users?ids=3,999999,1,3,1,888888,2", "")},
	{"users_escaped_comma", request("GET", "/api/users?ids=1%2C2", "")},
	{"users_degraded", request("GET", "/api/users?ids=1,999999", "")},
	{"users_none_there", request("GET", "/api/users?ids=777777", "")},
	{"users_no_ids", request("GET", "/api/users", "")},
	{"users_empty_ids", request("GET", "/api/users?ids=", "")},
	{"users_trailing_comma", request("GET", "/api/users?ids=1,2,", "")},
	{"users_word", request("GET", "/api/users?ids=1,two", "")},
	{"users_repeated_parameter", request("GET", "/api/users?ids=1&ids=2", "")},
	{"users_257", request("GET", "/api/users?ids="+idList(257), "")},
	{"users_delete", request("DELETE", "/api/users?ids=1", "", auth)},

	{"lookup", request("POST", "/api/users/lookup", `{"ids":[2,1,999999,2]}`, jsonBody)},
	{"lookup_charset", request("POST", "/api/users/lookup", `{"ids":[1]}`, "Content-Type: Application/JSON; charset=UTF-8")},
	{"lookup_empty", request("POST", "/api/users/lookup", `{"ids":[]}`, jsonBody)},
	{"lookup_1001", request("POST", "/api/users/lookup", `{"ids":[`+idList(1001)+`]}`, jsonBody)},
	{"lookup_no_type", request("POST", "/api/users/lookup", `{"ids":[1]}`)},
	{"lookup_form", request("POST", "/api/users/lookup", `ids=1`, "Content-Type: application/x-www-form-urlencoded")},
	{"lookup_multipart", request("POST", "/api/users/lookup", "--b\r\n\r\n--b--", "Content-Type: multipart/form-data; boundary=b")},
	{"lookup_charset_then_more", request("POST", "/api/users/lookup", `{"ids":[1]}`, `Content-Type: application/json; charset="utf-8"; v=1`)},
	{"lookup_latin1", request("POST", "/api/users/lookup", `{"ids":[1]}`, "Content-Type: application/json; charset=latin1")},
	{"lookup_gzip", request("POST", "/api/users/lookup", `{"ids":[1]}`, jsonBody, "Content-Encoding: gzip")},
	{"lookup_no_body", request("POST", "/api/users/lookup", "", jsonBody, "Content-Length: 0")},
	{"lookup_array", request("POST", "/api/users/lookup", `[1]`, jsonBody)},
	{"lookup_no_ids", request("POST", "/api/users/lookup", `{}`, jsonBody)},
	{"lookup_ids_null", request("POST", "/api/users/lookup", `{"ids":null}`, jsonBody)},
	{"lookup_string_id", request("POST", "/api/users/lookup", `{"ids":["1"]}`, jsonBody)},
	{"lookup_fraction_id", request("POST", "/api/users/lookup", `{"ids":[1.0]}`, jsonBody)},
	{"lookup_negative_id", request("POST", "/api/users/lookup", `{"ids":[-1]}`, jsonBody)},
	{"lookup_unknown_key", request("POST", "/api/users/lookup", `{"ids":[1],"<script>":1}`, jsonBody)},
	{"lookup_trailing_text", request("POST", "/api/users/lookup", `{"ids":[1]} x`, jsonBody)},
	{"lookup_get", request("GET", "/api/users/lookup", "")},
	{"lookup_delete", request("DELETE", "/api/users/lookup", "", auth)},

	{"active", request("GET", "/api/users/active?limit=3", "")},
	{"active_city", request("GET", "/api/users/active?city=1,2,3,4,5,6,7,8,9,10&limit=2", "")},
	{"active_since_future", request("GET", "/api/users/active?since=2999-01-01T00:00:00Z", "")},
	{"active_since_offset", request("GET", "/api/users/active?since=2999-01-01T00:00:00+02:00", "")},
	{"active_limit_zero", request("GET", "/api/users/active?limit=0", "")},
	{"active_limit_201", request("GET", "/api/users/active?limit=201", "")},
	{"active_bad_city", request("GET", "/api/users/active?city=a", "")},
	{"active_many_cities", request("GET", "/api/users/active?city="+idList(33), "")},
	{"active_bad_since", request("GET", "/api/users/active?since=yesterday", "")},
	{"active_patch", request("PATCH", "/api/users/active", "{}", auth, jsonBody)},

	{"address", request("GET", "/api/users/1/address", "")},
	{"address_missing", request("GET", "/api/users/999999/address", "")},
	{"address_bad_id", request("GET", "/api/users/x/address", "")},
	{"address_post", request("POST", "/api/users/1/address", "{}", auth, jsonBody)},

	{"create", request("POST", "/api/users", `{"name":"Zoë \"Z\" \u0001","email":"zoe@example.com"}`, auth, jsonBody)},
	{"create_all", request("POST", "/api/users", `{"name":"Ana","email":"ana@example.com","phone":"+1 555 0100","avatar":"https://example.com/a.png",`+
		`"status":2,"city_id":7,"address":"1 Main Street","attributes":{"b":"2","a":"1"}}`, auth, jsonBody)},
	{"create_no_writes", request("POST", "/api/users", `{"name":"Ana","email":"ana@example.com"}`, auth, jsonBody)},
	{"create_no_database", request("POST", "/api/users", `{"name":"Ana","email":"ana@example.com"}`, auth, jsonBody)},
	{"create_no_token", request("POST", "/api/users", `{"name":"Ana","email":"ana@example.com"}`, jsonBody)},
	{"create_wrong_token", request("POST", "/api/users", `{"name":"Ana","email":"ana@example.com"}`, jsonBody, "Authorization: Bearer nope")},
	{"create_basic_auth", request("POST", "/api/users", `{"name":"Ana","email":"ana@example.com"}`, jsonBody, "Authorization: Basic dG9rZW4xMjM=")},
	{"create_no_name", request("POST", "/api/users", `{"email":"ana@example.com"}`, auth, jsonBody)},
	{"create_no_email", request("POST", "/api/users", `{"name":"Ana"}`, auth, jsonBody)},
	{"create_bad_email", request("POST", "/api/users", `{"name":"Ana","email":"ana"}`, auth, jsonBody)},
	{"create_null_name", request("POST", "/api/users", `{"name":null,"email":"ana@example.com"}`, auth, jsonBody)},
	{"create_number_name", request("POST", "/api/users", `{"name":1,"email":"ana@example.com"}`, auth, jsonBody)},
	{"create_status_float", request("POST", "/api/users", `{"name":"Ana","email":"ana@example.com","status":1.5}`, auth, jsonBody)},
	{"create_status_large", request("POST", "/api/users", `{"name":"Ana","email":"ana@example.com","status":40000}`, auth, jsonBody)},
	{"create_city_negative", request("POST", "/api/users", `{"name":"Ana","email":"ana@example.com","city_id":-1}`, auth, jsonBody)},
	{"create_attribute_number", request("POST", "/api/users", `{"name":"Ana","email":"ana@example.com","attributes":{"a":1}}`, auth, jsonBody)},
	{"create_attributes_array", request("POST", "/api/users", `{"name":"Ana","email":"ana@example.com","attributes":["a"]}`, auth, jsonBody)},
	{"create_unknown_key", request("POST", "/api/users", `{"name":"Ana","email":"ana@example.com","role":"admin"}`, auth, jsonBody)},
	{"create_member", request("POST", "/api/users", `{"name":"Ana","email":"ana@example.com","member":{"level":"gold","points":1}}`, auth, jsonBody)},
	{"create_last_login", request("POST", "/api/users", `{"name":"Ana","email":"ana@example.com","last_login_at":"2026-01-02T15:04:05Z"}`, auth, jsonBody)},
	{"create_repeated_key", request("POST", "/api/users", `{"name":"Ana","name":"Bea","email":"ana@example.com"}`, auth, jsonBody)},
	{"create_repeated_escaped_key", request("POST", "/api/users", `{"name":"Ana","n\u0061me":"Bea","email":"ana@example.com"}`, auth, jsonBody)},
	{"create_invalid_utf8", request("POST", "/api/users", "{\"name\":\"A\xffa\",\"email\":\"ana@example.com\"}", auth, jsonBody)},
	{"create_lone_surrogate", request("POST", "/api/users", `{"name":"A\ud800","email":"ana@example.com"}`, auth, jsonBody)},
	{"create_brackets", request("POST", "/api/users", strings.Repeat("[", 10000), auth, jsonBody)},
	{"create_too_large", request("POST", "/api/users", `{"name":"`+strings.Repeat("a", 100<<10)+`"}`, auth, jsonBody)},
	{"create_long_name", request("POST", "/api/users", `{"name":"`+strings.Repeat("a", 257)+`","email":"ana@example.com"}`, auth, jsonBody)},

	{"update", request("PATCH", "/api/users/1", `{"name":"New Name","last_login_at":"2026-01-02T17:04:05.25+02:00"}`, auth, jsonBody)},
	{"update_empty", request("PATCH", "/api/users/1", `{}`, auth, jsonBody)},
	{"update_attributes", request("PATCH", "/api/users/1", `{"attributes":{}}`, auth, jsonBody)},
	{"update_missing", request("PATCH", "/api/users/999999", `{"name":"x"}`, auth, jsonBody)},
	{"update_id", request("PATCH", "/api/users/1", `{"id":2}`, auth, jsonBody)},
	{"update_bad_time", request("PATCH", "/api/users/1", `{"last_login_at":"now"}`, auth, jsonBody)},
	{"update_no_token", request("PATCH", "/api/users/1", `{"name":"x"}`, jsonBody)},
	{"update_bad_id", request("PATCH", "/api/users/x", `{"name":"x"}`, auth, jsonBody)},
	{"delete", request("DELETE", "/api/users/1", "", auth)},
	{"delete_missing", request("DELETE", "/api/users/999999", "", auth)},
	{"delete_no_token", request("DELETE", "/api/users/1", "")},

	{"not_found", request("GET", "/nothing/here", "")},
	{"not_found_root", request("GET", "/", "")},
	{"not_found_double_slash", request("GET", "//api/ping", "")},
	{"not_found_trailing_slash", request("GET", "/api/ping/", "")},
	{"not_found_dots", request("GET", "/api/../api/ping", "")},
	{"method_unknown", request("BREW", "/api/ping", "")},
	{"slow_request", "GET /api/ping HTTP/1.1\r\nHost: a\r\n"},
	{"bad_request_line", "GET\r\n\r\n"},
	{"bad_header", "GET /api/ping HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n"},
	{"head_too_large", request("GET", "/api/ping", "", "X-Large: "+strings.Repeat("x", 20000))},
}

// goldenFixtures are the surroundings of the cases that need others.
var goldenFixtures = map[string]fixtureOptions{
	"create_no_writes":   {tokens: new(handlers.Tokens)},
	"user_degraded":      {members: failing{}},
	"users_degraded":     {members: failing{}},
	"user_no_database":   {prepare: closeDatabase},
	"ready_no_database":  {prepare: closeDatabase},
	"create_no_database": {prepare: closeDatabase},
	"ready_draining":     {prepare: func(f *fixture) { f.health.SetDraining() }},
	"slow_request":       {readTime: 50 * time.Millisecond},
}

func closeDatabase(f *fixture) { _ = f.db.Close() }

func idList(n int) string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(i + 1)
	}
	return strings.Join(ids, ",")
}

var (
	dateLine = regexp.MustCompile(`(?m)^Date: .*\r\n`)
	madeID   = regexp.MustCompile(`\b[0-9a-f]{32}\b`)
)

// strictlyRefused are the cases that fasthttp and the loops refuse in different
// words; the loops' are in NAME.loop.golden.
var strictlyRefused = []string{"bad_request_line", "bad_header"}

// TestGolden compares whole answers, headers included, with testdata. After a
// wanted change: go test ./handlers -run Golden -update, and read the diff.
func TestGolden(t *testing.T) {
	known := map[string]bool{}
	for _, c := range goldenCases {
		known[c.name+".golden"] = true
		t.Run(c.name, func(t *testing.T) { golden(t, c.name, c.request, goldenFixtures[c.name]) })
		if runtime.GOOS != "linux" {
			continue
		}
		t.Run("loop/"+c.name, func(t *testing.T) {
			o, name := goldenFixtures[c.name], c.name
			if o.loop = true; slices.Contains(strictlyRefused, name) {
				name += ".loop"
			}
			golden(t, name, c.request, o)
		})
	}
	for _, name := range strictlyRefused {
		known[name+".loop.golden"] = true
	}
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[filepath.Base(f)] {
			t.Errorf("%s belongs to no case", f)
		}
	}
}

func golden(t *testing.T, name, request string, o fixtureOptions) {
	got := newFixture(t, o).send(t, request)
	if !dateLine.Match(got) {
		t.Error("no Date header")
	}
	got = dateLine.ReplaceAll(got, nil)
	got = madeID.ReplaceAll(got, []byte("(made)"))
	got = bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n"))
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("answer differs from %s\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}
