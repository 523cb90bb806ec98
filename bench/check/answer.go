package check

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"pinion/bench/peers/work"
)

// most is the longest body that is read.
const most = 1 << 20

// conn is a connection to a server.
type conn struct {
	net.Conn
	in   *bufio.Reader
	host string
	sent time.Time // when the last request was about to be
	stop func() bool
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.stop()
	return c.Conn.Close()
}

// dial connects. The connection is closed by the caller, or when ctx ends.
func (s *server) dial(ctx context.Context) (*conn, error) {
	d := net.Dialer{Timeout: patience}
	c, err := d.DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // whoever reads is told
	return &conn{Conn: c, in: bufio.NewReader(c), host: s.Addr, stop: stop}, nil
}

// on runs f with a connection.
func (s *server) on(ctx context.Context, f func(*conn) error) error {
	c, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // it was only read from
	return f(c)
}

// send sends what is one or more requests, or a part of one.
func (c *conn) send(b []byte) error {
	c.sent = time.Now()
	if err := c.SetDeadline(c.sent.Add(patience)); err != nil {
		return err
	}
	_, err := c.Write(b)
	return err
}

// ask sends a request and reads the answer.
func (c *conn) ask(e *work.Exchange) (answer, error) {
	if err := c.send(e.Append(nil, c.host)); err != nil {
		return answer{}, &Error{e.Route, "answer", "one that can be read", err.Error()}
	}
	return c.expect(e, false)
}

// answer is what a server sent.
type answer struct {
	status int
	names  []string            // of fields, in lower case, as they came
	fields map[string][]string // by these
	body   []byte
	size   int // of head and body
}

// date returns what a right answer has but once.
func (a *answer) date() string { return strings.Join(a.fields["date"], ", ") }

// read reads one answer, which must have a Content-Length.
func (c *conn) read() (a answer, err error) {
	if err := c.head(&a); err != nil {
		return a, err
	}
	length, coding := a.fields["content-length"], a.fields["transfer-encoding"]
	if len(length) != 1 || coding != nil {
		return a, fmt.Errorf("%d fields Content-Length, Transfer-Encoding %q", len(length), coding)
	}
	n, err := strconv.Atoi(length[0])
	if err != nil || !digits(length[0]) || n > most {
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

// expect reads the answer to an exchange. last says that the request asked for the end of
// the connection.
func (c *conn) expect(e *work.Exchange, last bool) (answer, error) {
	a, err := c.read()
	if err != nil {
		return a, &Error{e.Route, "answer", "one that can be read", err.Error()}
	}
	if a.status != http.StatusOK {
		return a, &Error{e.Route, "status", "200", fmt.Sprint(a.status)}
	}
	for _, name := range a.names {
		values := a.fields[name]
		if want, ok := right(name, values, last); !ok {
			return a, &Error{e.Route, http.CanonicalHeaderKey(name), want, strings.Join(values, ", ")}
		}
	}
	for _, name := range needed(last) {
		if a.fields[name] == nil {
			return a, &Error{e.Route, http.CanonicalHeaderKey(name), "one field", "none"}
		}
	}
	if !bytes.Equal(a.body, e.Want) {
		want, got := differ(e.Want, a.body)
		return a, &Error{e.Route, "body", want, got}
	}
	return a, date(e.Route, a.date(), c.sent, time.Now())
}

// needed returns the fields that every answer must have.
func needed(last bool) []string {
	if last {
		return []string{"date", "content-type", "connection"}
	}
	return []string{"date", "content-type"}
}

// right tells whether an answer may have the field, and what it may be. It is a list of
// what is known, since whatever else a server sends is work that others do not do, or is
// said of a body that is not as it seems.
func right(name string, values []string, last bool) (want string, ok bool) {
	one := strings.ToLower(values[0])
	switch {
	case !slices.Contains([]string{"connection", "content-length", "content-type", "date", "server"}, name):
		return "no such field", false
	case len(values) > 1:
		return "one field", false
	case name == "content-type":
		want = "application/json, with charset=utf-8 or nothing"
		kind, parameter, found := strings.Cut(one, ";")
		return want, kind == "application/json" && (!found || strings.TrimLeft(parameter, " ") == "charset=utf-8")
	case name == "connection" && last: // RFC 9112, 9.6
		return "close", one == "close"
	case name == "connection":
		return "keep-alive, if anything", one == "keep-alive"
	}
	return "", true
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

// among says of an error in an answer where that was.
func among(where string, err error) error {
	var wrong *Error
	if !errors.As(err, &wrong) {
		return err
	}
	return &Error{wrong.Route, where + ": " + wrong.What, wrong.Want, wrong.Got}
}
