package rediscache

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// ErrURL says that a URL is not one that Open takes.
var ErrURL = errors.New("wrong URL of Redis")

// endpoint is what a URL says.
type endpoint struct {
	network, addr      string // of net.Dial
	host               string // to check the certificate against; "" if TLS is not used
	username, password string
	db                 int
}

// CheckURL returns nil if Open would take the URL:
//
//	redis://[user:password@]host[:port][/db]
//	rediss://...                               the same over TLS
//	unix://[user:password@]/path[?db=N]
//
// Its errors match ErrURL and repeat nothing of the text, which may hold a password.
func CheckURL(text string) error {
	_, err := parseURL(text)
	return err
}

func parseURL(text string) (endpoint, error) {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" {
		return endpoint{}, refuse("it is no URL; want redis://user:password@host:port/db, special characters in % notation")
	}
	if u.Fragment != "" || strings.HasSuffix(text, "#") {
		return endpoint{}, refuse("it must not have a fragment; a # in a password is written %23")
	}
	e := endpoint{username: u.User.Username()}
	e.password, _ = u.User.Password()
	switch u.Scheme {
	case "redis", "rediss":
		err = e.tcp(u)
	case "unix":
		err = e.unix(u)
	default:
		err = refuse("it must begin with redis://, rediss:// or unix://")
	}
	return e, err
}

func refuse(why string) error { return fmt.Errorf("%w: %s", ErrURL, why) }

func (e *endpoint) tcp(u *url.URL) error {
	if u.RawQuery != "" || u.ForceQuery {
		return refuse("it must not have a query; a ? in a password is written %3F")
	}
	if u.Hostname() == "" {
		return refuse("it has no host")
	}
	port := u.Port()
	if port == "" {
		if strings.HasSuffix(u.Host, ":") {
			return refuse("its port is empty")
		}
		port = "6379"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return refuse("its port is not from 1 to 65535")
	}
	e.network, e.addr = "tcp", net.JoinHostPort(u.Hostname(), port)
	if u.Scheme == "rediss" {
		e.host = u.Hostname()
	}
	return e.database(strings.TrimPrefix(u.Path, "/"))
}

func (e *endpoint) unix(u *url.URL) error {
	if u.Host != "" || u.Path == "" || strings.HasSuffix(u.Path, "/") {
		return refuse("want unix:///path/of/the/socket")
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil || len(q) > 1 || len(q) != len(q["db"]) {
		return refuse("its query may only be db=N")
	}
	e.network, e.addr = "unix", u.Path
	return e.database(q.Get("db"))
}

func (e *endpoint) database(text string) error {
	if text == "" {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return refuse("its database is not a number")
	}
	e.db = int(n)
	return nil
}
