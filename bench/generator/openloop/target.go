package openloop

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// target is where requests go, and their bytes.
type target struct {
	addr    netip.AddrPort
	request []byte
	// bodiless says that answers have no body whatever their Content-Length.
	bodiless bool
}

func newTarget(rawURL, method, body string, header []string) (*target, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if u.Scheme != "http" || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("%w: URL %q: want http://host:port/path", ErrConfig, rawURL)
	}
	if !token(method) {
		return nil, fmt.Errorf("%w: method %q", ErrConfig, method)
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	addr, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return nil, fmt.Errorf("%w: URL %q: %w", ErrConfig, rawURL, err)
	}
	at := addr.AddrPort()
	t := &target{addr: netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), bodiless: method == "HEAD"}

	host := u.Host
	var lines strings.Builder
	for _, line := range header {
		name, value, found := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !found || !token(name) || !visible(value) {
			return nil, fmt.Errorf("%w: header %q: want Name: value", ErrConfig, line)
		}
		switch strings.ToLower(name) {
		case "host":
			host = value
			continue
		case "content-length", "transfer-encoding":
			return nil, fmt.Errorf("%w: header %q: the body is framed by its length", ErrConfig, line)
		}
		lines.WriteString(name + ": " + value + "\r\n")
	}
	if body != "" || method == "POST" || method == "PUT" || method == "PATCH" {
		lines.WriteString("Content-Length: " + strconv.Itoa(len(body)) + "\r\n")
	}
	t.request = []byte(method + " " + u.RequestURI() + " HTTP/1.1\r\nHost: " + host + "\r\n" + lines.String() + "\r\n" + body)
	return t, nil
}

// token reports whether s is one by RFC 9110, section 5.6.2.
func token[T string | []byte](s T) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c < 0x80 && strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return len(s) > 0
}

// visible reports whether s can be a field's value, by RFC 9110, section 5.5.
func visible[T string | []byte](s T) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
