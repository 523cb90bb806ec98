package handlers

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/valyala/fasthttp"
)

// DemoToken is the token that -demo accepts for writes.
const DemoToken = "token123"

// ErrTokens is wrapped by every error about a file of tokens.
var ErrTokens = errors.New("not a file of tokens")

// Tokens are the bearer tokens that may write, kept as SHA-256 digests: the
// file that lists them gives nobody a token. The zero value holds none. Tokens
// is safe for concurrent use once it is filled.
type Tokens struct {
	// names is keyed by digest. A lookup by digest leaks nothing by its
	// time: a caller cannot steer the digest of a guess.
	names map[[sha256.Size]byte]string
}

// Allow adds a token by its text.
func (t *Tokens) Allow(name, token string) {
	t.put(name, sha256.Sum256([]byte(token)))
}

func (t *Tokens) put(name string, digest [sha256.Size]byte) {
	if t.names == nil {
		t.names = make(map[[sha256.Size]byte]string)
	}
	t.names[digest] = name
}

// Read adds the tokens that r lists: one a line, "name:sha256hex", where
// sha256hex is the digest of the token in hexadecimal. Empty lines and lines
// that begin with # are skipped. An error names the line and wraps [ErrTokens].
func (t *Tokens) Read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, text, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			return fmt.Errorf("line %d: %w: want name:sha256hex", n, ErrTokens)
		}
		var digest [sha256.Size]byte
		if got, err := hex.DecodeString(text); err != nil || copy(digest[:], got) != len(digest) || len(got) != len(digest) {
			return fmt.Errorf("line %d: %w: the digest of %q must be %d hexadecimal digits", n, ErrTokens, name, 2*len(digest))
		}
		if other, ok := t.names[digest]; ok {
			return fmt.Errorf("line %d: %w: %q has the token of %q", n, ErrTokens, name, other)
		}
		t.put(name, digest)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrTokens, err)
	}
	return nil
}

// Empty reports whether nobody may write.
func (t *Tokens) Empty() bool { return t == nil || len(t.names) == 0 }

// authorize returns the name of who sent a request, if that may write.
func (t *Tokens) authorize(ctx *fasthttp.RequestCtx) (name string, err error) {
	if t.Empty() {
		return "", &problem{status: fasthttp.StatusForbidden, detail: "this server takes no writes: it was started without tokens"}
	}
	token, ok := bearer(ctx.Request.Header.Peek(fasthttp.HeaderAuthorization))
	if !ok {
		return "", unauthorized("a write needs Authorization: Bearer and a token", `Bearer realm="pinion"`)
	}
	name, ok = t.names[sha256.Sum256(token)]
	if !ok {
		return "", unauthorized("this token is not known here", `Bearer realm="pinion", error="invalid_token"`)
	}
	return name, nil
}

// unauthorized is a 401 with the challenge that RFC 6750, section 3, asks for.
func unauthorized(detail, challenge string) *problem {
	return &problem{
		status: fasthttp.StatusUnauthorized, detail: detail,
		header: fasthttp.HeaderWWWAuthenticate, value: challenge,
	}
}

// bearer takes the token out of an Authorization header; the scheme's name is
// case-insensitive (RFC 9110, section 11.1).
func bearer(header []byte) (token []byte, ok bool) {
	const scheme = "bearer "
	if len(header) <= len(scheme) || !bytes.EqualFold(header[:len(scheme)], []byte(scheme)) {
		return nil, false
	}
	return bytes.TrimLeft(header[len(scheme):], " "), true
}
