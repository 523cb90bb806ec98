package check

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"pinion/bench/peers/work"
)

const (
	// most is the longest body that is read.
	most = 1 << 20
	// exact is what a Date may be off by. Servers renew it about once a second.
	exact = 2 * time.Second
)

// conn is a connection to a server.
type conn struct {
	net.Conn
	in *bufio.Reader
}

func newConn(c net.Conn) *conn { return &conn{c, bufio.NewReader(c)} }

// answer is what a server sent.
type answer struct {
	status int
	fields map[string][]string // by lower-case name
	body   []byte
	size   int // of head and body
}

// read reads one answer, which must have a Content-Length.
func (c *conn) read() (a answer, err error) {
	a.fields = map[string][]string{}
	line, err := c.line(&a)
	if err != nil {
		return a, err
	}
	version, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	if a.status, err = strconv.Atoi(code); err != nil || version != "HTTP/1.1" {
		return a, fmt.Errorf("status line %q", line)
	}
	for {
		if line, err = c.line(&a); err != nil {
			return a, err
		}
		if line == "" {
			break
		}
		name, value, found := strings.Cut(line, ":")
		if !found {
			return a, fmt.Errorf("field line %q", line)
		}
		name = strings.ToLower(name)
		a.fields[name] = append(a.fields[name], strings.Trim(value, " \t"))
	}
	length := a.fields["content-length"]
	if len(length) != 1 {
		return a, fmt.Errorf("%d fields Content-Length, Transfer-Encoding %q", len(length), a.fields["transfer-encoding"])
	}
	n, err := strconv.Atoi(length[0])
	if err != nil || n < 0 || n > most {
		return a, fmt.Errorf("Content-Length %q", length[0])
	}
	a.body = make([]byte, n)
	got, err := io.ReadFull(c.in, a.body)
	a.size += got
	if err != nil {
		return a, fmt.Errorf("Content-Length %d, but the body ends after %d bytes: %w", n, got, err)
	}
	return a, nil
}

// line reads a line of a head.
func (c *conn) line(a *answer) (string, error) {
	line, err := c.in.ReadString('\n')
	a.size += len(line)
	if err != nil {
		return "", fmt.Errorf("the head ends after %d bytes: %w", a.size, err)
	}
	text, found := strings.CutSuffix(line, "\r\n")
	if !found {
		return "", fmt.Errorf("line %q of a head", line)
	}
	return text, nil
}

// expect reads the answer to an exchange, and returns its size.
func (c *conn) expect(e *work.Exchange) (int, error) {
	a, err := c.read()
	if err != nil {
		return 0, &Error{e.Route, "answer", "one that can be read", err.Error()}
	}
	kind, _, _ := strings.Cut(strings.Join(a.fields["content-type"], ", "), ";")
	switch {
	case a.status != http.StatusOK:
		return 0, &Error{e.Route, "status", "200", fmt.Sprint(a.status)}
	case strings.TrimSpace(kind) != "application/json":
		return 0, &Error{e.Route, "Content-Type", "application/json", kind}
	case !bytes.Equal(a.body, e.Want):
		want, got := differ(e.Want, a.body)
		return 0, &Error{e.Route, "body", want, got}
	}
	return a.size, date(e.Route, a.fields["date"], time.Now())
}

// date checks a Date, which an origin server with a clock must send (RFC 9110, 6.6.1), in
// the form that is left to senders (5.6.7).
func date(route string, values []string, now time.Time) error {
	if len(values) != 1 {
		return &Error{route, "Date", "one field", fmt.Sprintf("%d of them", len(values))}
	}
	t, err := time.Parse(http.TimeFormat, values[0])
	if err != nil || t.Format(http.TimeFormat) != values[0] {
		return &Error{route, "Date", "a date as in " + now.UTC().Format(http.TimeFormat), values[0]}
	}
	if off := now.Sub(t); off > exact || off < -exact {
		return &Error{route, "Date", now.UTC().Format(http.TimeFormat), values[0]}
	}
	return nil
}

// differ returns the parts of two bodies where they begin to differ.
func differ(want, got []byte) (string, string) {
	const before, after = 40, 80
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	part := func(b []byte) string { return string(b[max(0, i-before):min(len(b), i+after)]) }
	return part(want), part(got)
}
