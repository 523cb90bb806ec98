package members

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"pinion/codec"
	"pinion/users"
)

func TestAnswers(t *testing.T) {
	gold := users.Member{Level: "gold", Points: 1200}
	for name, c := range map[string]struct {
		body string
		want map[int64]users.Member
	}{
		"one member": {
			`{"members":[{"id":1,"level":"gold","points":1200}],"none":[2,3]}`,
			map[int64]users.Member{1: gold},
		},
		"any order, unknown keys": {
			` {"none":[3],"page":{"of":[1]},"members":[{"points":-5,"id":2,"since":null,"level":"Ω"},{"level":"gold","points":1200,"id":1}]} `,
			map[int64]users.Member{1: gold, 2: {Level: "Ω", Points: -5}},
		},
		"none at all": {`{"members":[],"none":[1,2,3]}`, map[int64]users.Member{}},
		"all members": {
			`{"members":[{"id":3,"level":"gold","points":1200},{"id":2,"level":"gold","points":1200},{"id":1,"level":"gold","points":1200}]}`,
			map[int64]users.Member{1: gold, 2: gold, 3: gold},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveScript(t, func(int, []int64) string { return ok(c.body) })
			got, err := newClient(t, Options{BaseURL: s.url()}).Members(context.Background(), []int64{3, 1, 2, 1})
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// wrongBodies are bodies that do not answer 1, 2 and 3, and what the error must name.
func wrongBodies() map[string]string {
	const rest = `],"none":[2,3]}`
	return map[string]string{
		``:                                "empty document",
		`null`:                            "want an object, got null",
		`[]`:                              "want an object",
		`{"none":[1,2,3]}`:                "members is missing",
		`{"members":null}`:                "members: want an array, got null",
		`{"members":{}}`:                  "members: want an array, got an object",
		`{"members":[]}`:                  "id 1 is missing",
		`{"members":[1` + rest:            "members[0]: want an object",
		`{"members":[],"none":[1,3]}`:     "id 2 is missing",
		`{"members":[],"none":[1,2,3,4]}`: "id 4 was not asked for",
		`{"members":[],"none":[1,2,3,3]}`: "id 3 comes twice",
		`{"members":[],"none":[1,2,"3"]}`: "none[2]: want a 64-bit integer",
		`{"members":[],"none":[1,2,3.0]}`: "got 3.0",
		`{"members":[],"none":{"1":2}}`:   "none: want an array",
		`{"members":[],"none":null}`:      "none: want an array",
		`{"members":[{"id":1,"level":"a","points":1}],"none":[1,2,3]}`:                            "id 1 comes twice",
		`{"members":[{"id":1,"level":"a","points":1` + `},{"id":1,"level":"b","points":2}` + rest: "members[1]: id 1 comes twice",
		`{"members":[{"id":4,"level":"a","points":1}` + rest:                                      "id 4 was not asked for",
		`{"members":[{"id":"1","level":"a","points":1}` + rest:                                    "id: want a 64-bit integer",
		`{"members":[{"id":1e0,"level":"a","points":1}` + rest:                                    "id: want",
		`{"members":[{"id":1,"level":null,"points":1}` + rest:                                     "level: want a string, got null",
		`{"members":[{"id":1,"level":"","points":1}` + rest:                                       "level: 0 bytes",
		`{"members":[{"id":1,"level":"` + strings.Repeat("x", 257) + `","points":1}` + rest:       "level: 257 bytes",
		`{"members":[{"id":1,"level":"a","points":"1"}` + rest:                                    "points: want",
		`{"members":[{"id":1,"level":"a","points":9223372036854775808}` + rest:                    "points: want",
		`{"members":[{"id":1,"level":"a"}` + rest:                                                 "points is missing",
		`{"members":[{"id":1,"points":1}` + rest:                                                  "level is missing",
		`{"members":[{"level":"a","points":1}` + rest:                                             "id is missing",
		`{"members":[{"id":1,"id":2,"level":"a","points":1}` + rest:                               "repeated key",
		`{"members":[],"members":[]}`:                                                             "repeated key",
		`{"members":[{"id":1,"level":"a` + "\xff" + `","points":1}` + rest:                        "UTF-8",
		`{"members":[{"id":1,"level":"\ud800","points":1}` + rest:                                 "surrogate",
		`{"members":[{"id":1,"level":"a","points":1}` + rest + `{}`:                               "after the end",
		`{"members":[{"id":1,"level":"a","points":1}`:                                             "unexpected end",
		strings.Repeat("[", 100):                                                                  "nested",
		`<html>`:                                                                                  "at byte 0",
	}
}

func TestWrongBodies(t *testing.T) {
	for body, want := range wrongBodies() {
		err := readBody(new(codec.Decoder), []byte(body), []int64{1, 2, 3}, map[int64]users.Member{})
		var wrong *AnswerError
		if !errors.As(err, &wrong) || !errors.Is(err, ErrAnswer) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, want ... %s ...", body, err, want)
		}
	}
}

// TestWrongAnswers sends what is wrong as HTTP, too. None of it may reach a user, and
// the next request must be served as if nothing had been.
func TestWrongAnswers(t *testing.T) {
	const good = `{"members":[{"id":1,"level":"gold","points":1}]}`
	head := func(lines ...string) string { return strings.Join(append(lines, "", ""), "\r\n") }
	const length = "Content-Length: 48"
	const isJSON = "Content-Type: application/json"
	for name, c := range map[string]struct{ answer, want string }{
		"500":            {head("HTTP/1.1 500 Oops", isJSON, length) + good, "status 500: want status 200"},
		"503":            {head("HTTP/1.1 503 Busy", "Content-Length: 0"), "status 503"},
		"404":            {head("HTTP/1.1 404 Not Found", isJSON, length) + good, "status 404"},
		"redirect":       {head("HTTP/1.1 302 Found", "Location: /elsewhere", "Content-Length: 0"), "status 302"},
		"204":            {head("HTTP/1.1 204 No Content"), "status 204"},
		"206":            {head("HTTP/1.1 206 Partial Content", isJSON, length) + good, "status 206"},
		"no type":        {head("HTTP/1.1 200 OK", length) + good, "want application/json"},
		"HTML":           {head("HTTP/1.1 200 OK", "Content-Type: text/html", length) + good, `content type "text/html"`},
		"problem":        {head("HTTP/1.1 200 OK", "Content-Type: application/problem+json", length) + good, "want application/json"},
		"broken type":    {head("HTTP/1.1 200 OK", "Content-Type: application/json; ;=\x01", length) + good, `\x01`},
		"charset":        {head("HTTP/1.1 200 OK", isJSON+"; charset=latin1", length) + good, `charset "latin1"`},
		"gzip":           {head("HTTP/1.1 200 OK", isJSON, "Content-Encoding: gzip", length) + good, `content encoding "gzip"`},
		"garbage":        {"\x16\x03\x01\x02garbage\r\n\r\n", "no HTTP"},
		"truncated head": {"HTTP/1.1 200 OK\r\nContent-Ty", "cut short"},
		"truncated body": {head("HTTP/1.1 200 OK", isJSON, length) + good[:30], "cut short"},
		"chunk cut":      {head("HTTP/1.1 200 OK", isJSON, "Transfer-Encoding: chunked") + "30\r\n" + good[:30], "cut short"},
		"bad chunk":      {head("HTTP/1.1 200 OK", isJSON, "Transfer-Encoding: chunked") + "zz\r\n" + good, "wrong answer"},
		"huge":           {head("HTTP/1.1 200 OK", isJSON, "Content-Length: 99999999999") + good, "longer than 1048576 bytes"},
		"huge chunk":     {head("HTTP/1.1 200 OK", isJSON, "Transfer-Encoding: chunked") + "fffffff0\r\n" + good, "longer than 1048576 bytes"},
		"long chunks":    {head("HTTP/1.1 200 OK", isJSON, "Transfer-Encoding: chunked") + strings.Repeat("8000\r\n"+strings.Repeat(" ", 0x8000)+"\r\n", 40), "longer than 1048576 bytes"},
		"huge head":      {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", "wrong answer"},
		"endless":        {head("HTTP/1.1 200 OK", isJSON, "Connection: close") + strings.Repeat(" ", MaxAnswer+1), "longer than 1048576 bytes"},
		"wrong body":     {ok(`{"members":[]}`), "id 1 is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveScript(t, func(n int, ids []int64) string {
				if n == 1 {
					return c.answer
				}
				return all(n, ids)
			})
			s.closing = true
			client := newClient(t, Options{BaseURL: s.url()})
			got, err := client.Members(context.Background(), []int64{1})
			var wrong *AnswerError
			if got != nil || !errors.As(err, &wrong) || !errors.Is(err, ErrAnswer) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, %v, want ... %s ...", got, err, c.want)
			}
			got, err = client.Members(context.Background(), []int64{1})
			if err != nil || got[1] != (users.Member{Level: "gold", Points: 1}) {
				t.Fatalf("the request after it: %v, %v", got, err)
			}
		})
	}
}

func FuzzReadBody(f *testing.F) {
	for body := range wrongBodies() {
		f.Add([]byte(body))
	}
	f.Add([]byte(`{"members":[{"id":1,"level":"gold","points":1200}],"none":[2,3]}`))
	f.Add([]byte(`{"members":[{"id":2,"level":"gold","points":0},{"id":1,"level":"ab","points":-1}],"none":[3],"x":1}`))
	ids := []int64{1, 2, 3}
	var d codec.Decoder
	f.Fuzz(func(t *testing.T, body []byte) {
		found := map[int64]users.Member{}
		err := readBody(&d, body, ids, found)
		if err != nil {
			if !errors.Is(err, ErrAnswer) {
				t.Fatalf("%v does not match ErrAnswer", err)
			}
			return
		}
		for id, m := range found {
			if id < 1 || id > 3 || m.Level == "" || len(m.Level) > MaxLevel {
				t.Fatalf("took %d: %v", id, m)
			}
		}
	})
}
