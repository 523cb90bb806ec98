package check

import (
	"fmt"
	"strconv"
	"strings"
)

// head reads a status line and the fields after it, as strictly as RFC 9112 has them.
func (c *conn) head(a *answer) error {
	a.fields = map[string][]string{}
	line, err := c.line(a)
	if err != nil {
		return err
	}
	// 4: the space before the reason is there even if that is empty.
	version, rest, _ := strings.Cut(line, " ")
	code, reason, found := strings.Cut(rest, " ")
	if version != "HTTP/1.1" || len(code) != 3 || !found || !printable(reason) {
		return fmt.Errorf("status line %q", line)
	}
	if a.status, err = strconv.Atoi(code); err != nil {
		return fmt.Errorf("status line %q: %w", line, err)
	}
	for {
		if line, err = c.line(a); err != nil {
			return err
		}
		if line == "" {
			return nil
		}
		name, value, found := strings.Cut(line, ":")
		if !found || !token(name) || !printable(value) {
			return fmt.Errorf("field line %q", line)
		}
		name = strings.ToLower(name)
		a.names = append(a.names, name)
		a.fields[name] = append(a.fields[name], strings.Trim(value, " \t"))
	}
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

// digits tells a number without a sign.
func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// token tells the name of a field (RFC 9110, 5.6.2).
func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !letter && !strings.ContainsRune("0123456789!#$%&'*+-.^_`|~", r)
	})
}

// printable tells the value of a field (RFC 9110, 5.5). Bytes beyond ASCII are in it, but
// no server has reason to send any.
func printable(s string) bool {
	for i := range len(s) {
		if b := s[i]; b != '\t' && (b < ' ' || b > '~') {
			return false
		}
	}
	return true
}
