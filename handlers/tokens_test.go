package handlers_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"pinion/handlers"
)

func digest(token string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(token))) }

func TestTokensRead(t *testing.T) {
	tokens := new(handlers.Tokens)
	err := tokens.Read(strings.NewReader("# who may write\n\n ci:" + strings.ToUpper(digest("s3cret")) + "\r\nops:" + digest("other") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, fixtureOptions{tokens: tokens})
	for _, c := range []struct{ token, status string }{
		{handlers.DemoToken, "401"}, {"s3cret", "204"}, {"other", "404"}, // it is gone by then
	} {
		got := f.send(t, request("DELETE", "/api/users/1", "", "Authorization: Bearer "+c.token))
		if !strings.HasPrefix(string(got), "HTTP/1.1 "+c.status) {
			t.Errorf("%s: got %.30q, want %s", c.token, got, c.status)
		}
	}
}

func TestTokensReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"ci\n":                     "line 1: not a file of tokens: want name:sha256hex",
		":" + digest("a"):          "line 1: not a file of tokens: want name:sha256hex",
		"# x\nci:abc":              `line 2: not a file of tokens: the digest of "ci" must be 64 hexadecimal digits`,
		"ci:" + digest("a") + "00": `line 1: not a file of tokens: the digest of "ci" must be 64 hexadecimal digits`,
		"a:" + digest("x") + "\nb:" + digest("x"): `line 2: not a file of tokens: "b" has the token of "a"`,
	} {
		err := new(handlers.Tokens).Read(strings.NewReader(text))
		if err == nil || err.Error() != want || !errors.Is(err, handlers.ErrTokens) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	// A line longer than any token line is an error too, not silence.
	if err := new(handlers.Tokens).Read(strings.NewReader(strings.Repeat("a", 1<<20))); !errors.Is(err, handlers.ErrTokens) {
		t.Errorf("a line of 1 MiB: %v", err)
	}
}

func TestBearer(t *testing.T) {
	f := newFixture(t, fixtureOptions{})
	for header, status := range map[string]int{
		"Bearer token123":   200,
		"bearer token123":   200,
		"BEARER   token123": 200,
		"Bearer token1234":  401,
		"Bearer token12":    401,
		"Bearertoken123":    401,
		"Bearer":            401,
		"token123":          401,
		"Basic token123":    401,
	} {
		var resp fasthttp.Response
		answer := f.send(t, request("PATCH", "/api/users/1", `{}`, jsonBody, "Authorization: "+header))
		if err := resp.Read(newReader(answer)); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode() != status {
			t.Errorf("%q: %d, want %d", header, resp.StatusCode(), status)
		}
		if challenge := resp.Header.Peek("WWW-Authenticate"); (len(challenge) > 0) != (status == 401) {
			t.Errorf("%q: challenge %q", header, challenge)
		}
	}
}
