package members

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// ParseURL checks the base URL of a member service: http or https, a host, perhaps a
// port and a path, and nothing more. Its errors match ErrURL and never hold what may
// be a password.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		// The error of url.Parse repeats the text, and where in it a password would be is
		// anybody's guess.
		return nil, fmt.Errorf("%w: it is no URL; want http://host:port/path", ErrURL)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%w: it must begin with http:// or https://", ErrURL)
	}
	if u.User != nil {
		return nil, fmt.Errorf("%w: it must not hold a user or a password", ErrURL)
	}
	// Nothing of the text is repeated below either: what follows a # or ? that nobody
	// escaped may be the rest of a password.
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(text, "#") {
		return nil, fmt.Errorf("%w: it must not have a query or a fragment", ErrURL)
	}
	if u.Opaque != "" || u.Hostname() == "" {
		return nil, fmt.Errorf("%w: it has no host", ErrURL)
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("%w: its port is not from 1 to 65535", ErrURL)
		}
	}
	return u, nil
}

// address is where to dial.
func address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}
