package handlers_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"pinion/handlers"
	"pinion/users"
)

func newReader(b []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(b)) }

// exchange sends one request on an open connection and reads one answer.
func exchange(t testing.TB, c net.Conn, r *bufio.Reader, request string) *fasthttp.Response {
	t.Helper()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	resp := new(fasthttp.Response)
	resp.SkipBody = strings.HasPrefix(request, "HEAD ")
	if err := resp.Read(r); err != nil {
		t.Fatalf("reading the answer to %.60q: %v", request, err)
	}
	return resp
}

func TestNewNeedsUsers(t *testing.T) {
	if _, err := handlers.New(handlers.Options{}); err == nil {
		t.Error("an API without users was made")
	}
}

// TestAnswerAfterRefusal: a refused body must not become the next request.
func TestAnswerAfterRefusal(t *testing.T) {
	f := newFixture(t, fixtureOptions{})
	bodies := []string{
		`{"name":"Ana","email":"a@example.com","role":"admin"}`,
		`{"name":"Ana","name":"Bea","email":"a@example.com"}`,
		"{\"name\":\"\xff\",\"email\":\"a@example.com\"}",
		strings.Repeat("[", 10000),
		`GET /api/users/1 HTTP/1.1` + "\r\n\r\n",
		`{"name":"` + strings.Repeat("a", 60<<10) + `"`,
	}
	for _, body := range bodies {
		c := f.dial(t)
		r := bufio.NewReader(c)
		resp := exchange(t, c, r, request("POST", "/api/users", body, auth, jsonBody))
		if got := resp.StatusCode(); got != 400 {
			t.Errorf("%.40q: status %d, want 400", body, got)
		}
		if got := string(resp.Header.ContentType()); got != "application/problem+json" {
			t.Errorf("%.40q: content type %q", body, got)
		}
		next := exchange(t, c, r, request("GET", "/api/ping", ""))
		if got := string(next.Body()); got != `{"status":"ok"}` {
			t.Errorf("%.40q: the next answer is %q", body, got)
		}
	}
}

// TestWriteThenRead: what a write has answered, every later read answers.
func TestWriteThenRead(t *testing.T) {
	f := newFixture(t, fixtureOptions{})
	c := f.dial(t)
	r := bufio.NewReader(c)
	created := exchange(t, c, r, request("POST", "/api/users",
		`{"name":"Ana","email":"ana@example.com","address":"1 Main Street"}`, auth, jsonBody))
	if created.StatusCode() != 201 {
		t.Fatalf("create: %s", created.Body())
	}
	location := string(created.Header.Peek("Location"))
	read := exchange(t, c, r, request("GET", location, ""))
	if !bytes.Equal(read.Body(), created.Body()) {
		t.Errorf("read %s\nafter creating %s", read.Body(), created.Body())
	}
	if got := string(exchange(t, c, r, request("GET", location+"/address", "")).Body()); !strings.Contains(got, `"address":"1 Main Street"`) {
		t.Errorf("address: %s", got)
	}
	for i := range 20 {
		name := fmt.Sprintf("Ana %d", i)
		patched := exchange(t, c, r, request("PATCH", location, `{"name":"`+name+`"}`, auth, jsonBody))
		read := exchange(t, c, r, request("GET", location, ""))
		if !bytes.Contains(read.Body(), []byte(name)) || !bytes.Equal(read.Body(), patched.Body()) {
			t.Fatalf("read %s\nafter writing %s", read.Body(), patched.Body())
		}
	}
	if got := exchange(t, c, r, request("DELETE", location, "", auth)); got.StatusCode() != 204 {
		t.Fatalf("delete: %d %s", got.StatusCode(), got.Body())
	}
	if got := exchange(t, c, r, request("GET", location, "")); got.StatusCode() != 404 {
		t.Errorf("deleted user: %d %s", got.StatusCode(), got.Body())
	}
}

// TestAnswerTooLarge asks for users that were made to be large, within the
// limits of each.
func TestAnswerTooLarge(t *testing.T) {
	f := newFixture(t, fixtureOptions{})
	var attrs []users.Attribute
	for i := range 8 {
		attrs = append(attrs, users.Attribute{Key: fmt.Sprint(i), Value: strings.Repeat("\x01", 1000)}) // six bytes each in JSON
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var ids []string
	for range 400 {
		id, err := f.db.Create(ctx, users.NewUser{Name: "n", Email: "a@example.com", Attributes: attrs})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, fmt.Sprint(id))
	}
	ask := func(n int) []byte {
		return f.send(t, request("POST", "/api/users/lookup", `{"ids":[`+strings.Join(ids[:n], ",")+`]}`, jsonBody))
	}
	if got := ask(300); !bytes.HasPrefix(got, []byte("HTTP/1.1 200 OK")) {
		t.Errorf("300 users: %.300s", got)
	}
	if got := ask(400); !bytes.HasPrefix(got, []byte("HTTP/1.1 400 ")) || !bytes.Contains(got, []byte("ask for fewer at once")) {
		t.Errorf("400 users: %.300s", got)
	}
}

// TestTimeoutHeader: a bad one is refused whether or not the answer is cached,
// and a short one only matters when it is not.
func TestTimeoutHeader(t *testing.T) {
	f := newFixture(t, fixtureOptions{})
	c := f.dial(t)
	r := bufio.NewReader(c)
	for _, target := range []string{"/api/users/1", "/api/users?ids=1,2"} {
		for _, pass := range []string{"cold", "cached"} {
			for value, want := range map[string]int{"soon": 400, "-1": 400, "1.5": 400} {
				resp := exchange(t, c, r, request("GET", target, "", "X-Request-Timeout-Ms: "+value))
				if resp.StatusCode() != want {
					t.Errorf("%s, %s, %q: %d, want %d", target, pass, value, resp.StatusCode(), want)
				}
			}
			want := 200
			if pass == "cold" {
				want = 504
			}
			if resp := exchange(t, c, r, request("GET", target, "", "X-Request-Timeout-Ms: 0")); resp.StatusCode() != want {
				t.Errorf("%s, %s, no time: %d, want %d", target, pass, resp.StatusCode(), want)
			}
			exchange(t, c, r, request("GET", target, "")) // now it is cached
		}
		exchange(t, c, r, request("PATCH", "/api/users/1", `{"name":"x"}`, auth, jsonBody))
		exchange(t, c, r, request("DELETE", "/api/users/2", "", auth))
	}
}

// failing is a member service that is down.
type failing struct{}

func (failing) Members(context.Context, []int64) (map[int64]users.Member, error) {
	return nil, errors.New("member service: connection refused to 10.9.8.7")
}

func TestDegraded(t *testing.T) {
	f := newFixture(t, fixtureOptions{members: failing{}})
	c := f.dial(t)
	r := bufio.NewReader(c)
	for target, end := range map[string]string{
		"/api/users/1":             `"member":null,"degraded":["member"]}`,
		"/api/users?ids=1,2":       `"missing":[],"degraded":["member"]}`,
		"/api/users/active":        `],"degraded":["member"]}`,
		"/api/users?ids=99999,1,2": `"missing":[99999],"degraded":["member"]}`,
		"/api/users?ids=99998":     `{"users":[],"missing":[99998]}`, // nothing is lacking
	} {
		for _, pass := range []string{"cold", "cached"} {
			body := exchange(t, c, r, request("GET", target, "")).Body()
			if !bytes.HasSuffix(body, []byte(end)) {
				t.Errorf("%s, %s: %s does not end in %s", target, pass, body, end)
			}
			if !json.Valid(body) {
				t.Errorf("%s, %s: invalid JSON: %s", target, pass, body)
			}
		}
	}
}

// hanging is a member service that never answers.
type hanging struct{}

func (hanging) Members(ctx context.Context, _ []int64) (map[int64]users.Member, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestSourceHangs: waiting for a part must not cost the whole answer.
func TestSourceHangs(t *testing.T) {
	f := newFixture(t, fixtureOptions{members: hanging{}, workTime: time.Second})
	for range 2 {
		got := f.send(t, request("GET", "/api/users/1", ""))
		if !bytes.HasPrefix(got, []byte("HTTP/1.1 200")) || !bytes.HasSuffix(got, []byte(`"member":null,"degraded":["member"]}`)) {
			t.Errorf("got %s", got)
		}
		time.Sleep(time.Second) // what is degraded is cached for less
	}
}

// TestOverload: what one connection too many is sent is a whole answer.
func TestOverload(t *testing.T) {
	f := newFixture(t, fixtureOptions{})
	var resp fasthttp.Response
	if err := resp.Read(newReader(f.api.Overload(503))); err != nil {
		t.Fatal(err)
	}
	var problem struct {
		Status    int
		RequestID string `json:"request_id"`
	}
	if err := json.Unmarshal(resp.Body(), &problem); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode() != 503 || problem.Status != 503 || problem.RequestID == "" || !resp.ConnectionClose() ||
		len(resp.Header.Peek("Date")) == 0 || string(resp.Header.ContentType()) != "application/problem+json" {
		t.Errorf("got %s%s", resp.Header.String(), resp.Body())
	}
}

// TestSourceDown: without rows there is a 503 that says when to come back and
// nothing about why.
func TestSourceDown(t *testing.T) {
	var log bytes.Buffer
	f := newFixture(t, fixtureOptions{logger: slog.New(slog.NewTextHandler(&log, nil))})
	c := f.dial(t)
	r := bufio.NewReader(c)
	exchange(t, c, r, request("GET", "/api/users/1", "")) // now cached
	if err := f.db.Close(); err != nil {
		t.Fatal(err)
	}
	resp := exchange(t, c, r, request("GET", "/api/users/2", ""))
	if resp.StatusCode() != 503 || string(resp.Header.Peek("Retry-After")) != "1" {
		t.Errorf("got %d %s", resp.StatusCode(), resp.Header.String())
	}
	if bytes.Contains(resp.Body(), []byte("sql")) {
		t.Errorf("the answer tells of the inside: %s", resp.Body())
	}
	if !strings.Contains(log.String(), "request failed") || !strings.Contains(log.String(), "request_id=golden") {
		t.Errorf("the log does not tell why: %s", log.String())
	}
	if resp := exchange(t, c, r, request("GET", "/api/users/1", "")); resp.StatusCode() != 200 {
		t.Errorf("a cached user: %d", resp.StatusCode())
	}
}

func TestReady(t *testing.T) {
	f := newFixture(t, fixtureOptions{})
	f.health.SetDraining()
	got := f.send(t, request("GET", "/ready", ""))
	if !bytes.Contains(got, []byte("503 Service Unavailable")) || !bytes.Contains(got, []byte(`"detail":"draining"`)) {
		t.Errorf("got %s", got)
	}
}

func TestWritesWithoutTokens(t *testing.T) {
	f := newFixture(t, fixtureOptions{tokens: new(handlers.Tokens)})
	for _, method := range []string{"PATCH", "DELETE"} {
		got := f.send(t, request(method, "/api/users/1", `{}`, auth, jsonBody))
		if !bytes.Contains(got, []byte("403 Forbidden")) {
			t.Errorf("%s: %s", method, got)
		}
	}
}

func TestRequestID(t *testing.T) {
	f := newFixture(t, fixtureOptions{})
	for id, taken := range map[string]bool{
		"abc-123":                  true,
		"A.b_c:d/e+f=":             true,
		strings.Repeat("a", 128):   true,
		strings.Repeat("a", 129):   false,
		`"quoted"`:                 false,
		"with space":               false,
		"line\\nbreak":             false,
		"\xff":                     false,
		"<script>":                 false,
		"":                         false,
		"\u00e9":                   false,
		"x' OR '1'='1":             false,
		"${jndi:ldap://a.example}": false,
	} {
		answer := f.send(t, "GET /nothing HTTP/1.1\r\nHost: a\r\nX-Request-Id: "+id+"\r\n\r\n")
		var resp fasthttp.Response
		if err := resp.Read(newReader(answer)); err != nil {
			t.Fatal(err)
		}
		var problem struct {
			RequestID string `json:"request_id"`
		}
		if err := json.Unmarshal(resp.Body(), &problem); err != nil {
			t.Fatal(err)
		}
		header := string(resp.Header.Peek("X-Request-Id"))
		if header == "" || header != problem.RequestID {
			t.Errorf("%q: header %q, body %q", id, header, problem.RequestID)
		}
		if (header == id) != taken {
			t.Errorf("%q: answered %q, taken should be %v", id, header, taken)
		}
	}
}

// recorder keeps what the API logs.
type recorder struct {
	mu      sync.Mutex
	entries []handlers.Entry
}

func (r *recorder) Wants(_ uint64, status int) bool { return status >= 400 }

func (r *recorder) Record(_ uint64, e *handlers.Entry) {
	kept := *e
	kept.Path, kept.Query, kept.RequestID = slices.Clone(e.Path), slices.Clone(e.Query), slices.Clone(e.RequestID)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, kept)
}

func TestAccessLogEntry(t *testing.T) {
	log := new(recorder)
	f := newFixture(t, fixtureOptions{log: log})
	f.send(t, request("GET", "/api/ping", ""))
	f.send(t, request("GET", "/api/users/x?a=1", ""))
	f.send(t, request("BREW", "/pot", ""))
	f.send(t, "GET\r\n\r\n")
	log.mu.Lock()
	defer log.mu.Unlock()
	if len(log.entries) != 3 {
		t.Fatalf("%d entries, want 3: %+v", len(log.entries), log.entries)
	}
	e := log.entries[0]
	if e.Handler != "user" || e.Method != "GET" || string(e.Path) != "/api/users/x" || string(e.Query) != "a=1" ||
		e.Status != 400 || e.Bytes == 0 || string(e.RequestID) != "golden" || e.Time.IsZero() || e.Duration <= 0 {
		t.Errorf("entry of a bad id: %+v", e)
	}
	if e := log.entries[1]; e.Handler != "not_found" || e.Method != "_OTHER" || e.Status != 404 {
		t.Errorf("entry of an unknown method: %+v", e)
	}
	if e := log.entries[2]; e.Handler != "bad_request" || e.Status != 400 || e.Time.IsZero() ||
		e.Method != "_OTHER" || len(e.Path) != 0 {
		t.Errorf("entry of a malformed request: %+v", e)
	}
}

// TestDurations: each answer is counted once, under its own labels.
func TestDurations(t *testing.T) {
	f := newFixture(t, fixtureOptions{})
	for _, r := range []string{
		request("GET", "/api/ping", ""), request("GET", "/api/ping", ""), request("HEAD", "/api/ping", ""),
		request("GET", "/api/users/1", ""), request("GET", "/api/users/99999", ""), request("GET", "/api/users/x", ""),
		request("PUT", "/api/users/1", ""), request("BREW", "/x", ""), "GET\r\n\r\n",
	} {
		f.send(t, r)
	}
	got := map[string]uint64{}
	for _, family := range f.stats.Snapshot() {
		if family.Name == "http_server_request_duration_seconds" {
			for _, s := range family.Series {
				got[strings.Join(s.LabelValues, " ")] = s.Count
			}
		}
	}
	want := map[string]uint64{
		"ping GET 200": 2, "ping HEAD 200": 1, "user GET 200": 1, "user GET 404": 1, "user GET 400": 1,
		"method_not_allowed PUT 405": 1, "not_found _OTHER 404": 1, "bad_request _OTHER 400": 1,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestConcurrent mixes reads and writes on many connections; run under -race
// it proves that no two requests share scratch.
func TestConcurrent(t *testing.T) {
	f := newFixture(t, fixtureOptions{})
	var wg sync.WaitGroup
	deadline := time.Now().Add(500 * time.Millisecond)
	for g := range 8 {
		wg.Go(func() {
			c := f.dial(t)
			r := bufio.NewReader(c)
			for i := 0; time.Now().Before(deadline); i++ {
				id := 1 + (g+i)%20
				body := exchange(t, c, r, request("GET", fmt.Sprintf("/api/users/%d", id), "")).Body()
				if want := fmt.Sprintf(`{"id":%d,`, id); !bytes.HasPrefix(body, []byte(want)) {
					t.Errorf("asked for %d, got %.40s", id, body)
					return
				}
				body = exchange(t, c, r, request("GET", fmt.Sprintf("/api/users?ids=%d,%d,9999", id, 21-id), "")).Body()
				var batch struct {
					Users   []struct{ ID int }
					Missing []int
				}
				if err := json.Unmarshal(body, &batch); err != nil || batch.Users[0].ID != id || batch.Missing[0] != 9999 {
					t.Errorf("batch of %d: %v %s", id, err, body)
					return
				}
				if i%8 == 0 {
					name := fmt.Sprintf("Writer %d, %d", g, i)
					body := exchange(t, c, r, request("PATCH", fmt.Sprintf("/api/users/%d", id), `{"name":"`+name+`"}`, auth, jsonBody)).Body()
					if !json.Valid(body) {
						t.Errorf("invalid JSON: %s", body)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}
