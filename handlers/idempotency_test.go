package handlers_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"pinion/handlers"
	"pinion/users"
)

const ana = `{"name":"Ana","email":"ana@example.com","attributes":{"a":"1","b":"2"}}`

// TestIdempotencyKey sends creates one after another.
func TestIdempotencyKey(t *testing.T) {
	tokens := new(handlers.Tokens)
	tokens.Allow("demo", handlers.DemoToken)
	tokens.Allow("other", "another")
	f := newFixture(t, fixtureOptions{tokens: tokens})
	c := f.dial(t)
	r := bufio.NewReader(c)
	key := func(text string) string { return "Idempotency-Key: " + text }
	for i, tc := range []struct {
		body    string
		headers []string
		status  int
		want    string // of the answer
	}{
		{ana, []string{auth, key("k1")}, 201, `"id":21,`},
		{ana, []string{auth, key("k1")}, 201, `"id":21,`},
		{`{"attributes":{"b":"2","a":"1"}, "email":"ana@example.com","name":"Ana"}`, []string{auth, key("k1")}, 201, `"id":21,`}, // the same content
		{ana, []string{auth}, 201, `"id":22,`},
		{ana, []string{auth, key(`"k1"`)}, 201, `"id":23,`}, // another text is another key
		{ana, []string{"Authorization: Bearer another", key("k1")}, 201, `"id":24,`},
		{strings.Replace(ana, "Ana", "Bea", 1), []string{auth, key("k1")}, 422, "sent before with another body"},
		{ana, []string{auth, key("")}, 400, "Idempotency-Key must be"},
		{ana, []string{auth, key(strings.Repeat("k", 256))}, 400, "Idempotency-Key must be"},
		{ana, []string{auth, key("k\xe9")}, 400, "Idempotency-Key must be"},
		{ana, []string{auth, key("k1"), key("k2")}, 400, "Idempotency-Key must be"},
		{ana, []string{auth, key(strings.Repeat("k", 255))}, 201, `"id":25,`},
	} {
		resp := exchange(t, c, r, request("POST", "/api/users", tc.body, append(tc.headers, jsonBody)...))
		if resp.StatusCode() != tc.status || !strings.Contains(string(resp.Body()), tc.want) {
			t.Errorf("%d: got %d %s, want %d with %s", i, resp.StatusCode(), resp.Body(), tc.status, tc.want)
		}
		if location := string(resp.Header.Peek("Location")); tc.status == 201 && !strings.Contains(fmt.Sprintf(`"id":%s,`, strings.TrimPrefix(location, "/api/users/")), tc.want) {
			t.Errorf("%d: Location %s, want that of %s", i, location, tc.want)
		}
	}

	// A retry does not bring a deleted user back.
	if resp := exchange(t, c, r, request("DELETE", "/api/users/21", "", auth)); resp.StatusCode() != 204 {
		t.Fatalf("delete: %d", resp.StatusCode())
	}
	resp := exchange(t, c, r, request("POST", "/api/users", ana, auth, jsonBody, key("k1")))
	if resp.StatusCode() != 404 {
		t.Errorf("retry after delete: got %d %s, want 404", resp.StatusCode(), resp.Body())
	}
}

// lossy is a database whose connection is lost while it commits.
type lossy struct{ users.Rows }

func (lossy) Create(context.Context, users.NewUser) (int64, error) {
	return 0, fmt.Errorf("commit: %w", users.ErrUnknownOutcome)
}

func (lossy) Update(context.Context, int64, users.Patch) error {
	return fmt.Errorf("commit: %w", users.ErrUnknownOutcome)
}

func (lossy) Delete(context.Context, int64) error {
	return fmt.Errorf("commit: %w", users.ErrUnknownOutcome)
}

// unreadable is a database that can be written, and no longer read.
type unreadable struct{ users.Rows }

func (unreadable) Users(context.Context, []int64) ([]users.User, error) {
	return nil, errors.New("gone")
}

// TestStored: what is stored is said to be, though it cannot be answered.
func TestStored(t *testing.T) {
	f := newFixture(t, fixtureOptions{rows: func(rows users.Rows) users.Rows { return unreadable{rows} }})
	c := f.dial(t)
	r := bufio.NewReader(c)
	for _, write := range []string{
		request("POST", "/api/users", ana, auth, jsonBody),
		request("PATCH", "/api/users/1", `{"name":"Bea"}`, auth, jsonBody),
	} {
		resp := exchange(t, c, r, write)
		if resp.StatusCode() != fasthttp.StatusServiceUnavailable ||
			!strings.Contains(string(resp.Body()), "is stored, but could not be read back") ||
			len(resp.Header.Peek("Retry-After")) == 0 {
			t.Errorf("%.20s: got %d %s", write, resp.StatusCode(), resp.Body())
		}
	}
}

// TestUnknownOutcome: a write that may be stored is neither a success nor a plain
// failure.
func TestUnknownOutcome(t *testing.T) {
	f := newFixture(t, fixtureOptions{rows: func(rows users.Rows) users.Rows { return lossy{rows} }})
	c := f.dial(t)
	r := bufio.NewReader(c)
	for _, write := range []string{
		request("POST", "/api/users", ana, auth, jsonBody),
		request("PATCH", "/api/users/1", `{"name":"Bea"}`, auth, jsonBody),
		request("DELETE", "/api/users/1", "", auth),
	} {
		resp := exchange(t, c, r, write)
		if resp.StatusCode() != fasthttp.StatusServiceUnavailable ||
			!strings.Contains(string(resp.Body()), "not known whether this write was stored") ||
			len(resp.Header.Peek("Retry-After")) == 0 {
			t.Errorf("%.20s: got %d %s", write, resp.StatusCode(), resp.Body())
		}
	}
}
