package members

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestLateSurplus has a second answer come for the same id, when the connection rests.
func TestLateSurplus(t *testing.T) {
	pair := httptest.NewUnstartedServer(nil) // for its certificate
	pair.StartTLS()
	defer pair.Close()
	roots := x509.NewCertPool()
	roots.AddCert(pair.Certificate())
	for name, secure := range map[string]bool{"http": false, "https": true} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			opts := Options{BaseURL: "http://" + ln.Addr().String()}
			if secure {
				opts.BaseURL = "https://" + ln.Addr().String()
				opts.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
				ln = tls.NewListener(ln, &tls.Config{Certificates: pair.TLS.Certificates, MinVersion: tls.VersionTLS12})
			}
			s := serveOn(t, ln, all)
			s.late = func(n int) string {
				if n > 1 {
					return ""
				}
				return ok(`{"members":[{"id":1,"level":"old","points":0}]}`)
			}
			c := newClient(t, opts)
			mustAsk(t, c, 1)
			eventually(t, "the surplus arrives", func() bool { return !c.pool.kept[0].quiet() })
			for range 10 {
				mustAsk(t, c, 1)
			}
			if n := s.accepted.Load(); n != 2 {
				t.Errorf("%d connections, want 2", n)
			}
		})
	}
}

// TestReadAhead has the surplus where only TLS sees it: the socket is empty.
func TestReadAhead(t *testing.T) {
	s := serveScript(t, all)
	socket, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p := newPool(1, time.Hour, func(context.Context) (net.Conn, error) {
		return &readAhead{Conn: socket, ahead: strings.NewReader("HT")}, nil
	})
	defer p.close()
	c, err := p.open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if !silent(socket) || c.quiet() {
		t.Errorf("socket silent: %v, connection quiet: %v; want true, false", silent(socket), c.quiet())
	}
}

// readAhead stands for a TLS connection that has decrypted more than was asked for.
type readAhead struct {
	net.Conn
	ahead *strings.Reader
}

func (r *readAhead) NetConn() net.Conn { return r.Conn }

func (r *readAhead) Read(b []byte) (int, error) {
	if r.ahead.Len() > 0 {
		return r.ahead.Read(b)
	}
	return r.Conn.Read(b)
}

// TestRefusedAnswer makes sure that no connection outlives an answer that was refused.
func TestRefusedAnswer(t *testing.T) {
	for name, answer := range map[string]string{
		"status":         strings.Replace(ok(`{"members":[],"none":[1]}`), "200 OK", "503 Busy", 1),
		"content type":   strings.Replace(ok(`{"members":[],"none":[1]}`), "application/json", "text/html", 1),
		"of another":     ok(`{"members":[],"none":[2]}`),
		"wrong member":   ok(`{"members":[{"id":1,"level":"","points":1}]}`),
		"no JSON":        ok(`{"members":[`),
		"an id too much": ok(`{"members":[],"none":[1,2]}`),
	} {
		t.Run(name, func(t *testing.T) {
			s := serveScript(t, func(n int, ids []int64) string {
				if n == 1 {
					return answer
				}
				return all(n, ids)
			})
			c := newClient(t, Options{BaseURL: s.url()})
			if _, err := c.Members(context.Background(), []int64{1}); !errors.Is(err, ErrAnswer) {
				t.Errorf("got %v, want ErrAnswer", err)
			}
			mustAsk(t, c, 1)
			if n := s.accepted.Load(); n != 2 {
				t.Errorf("%d connections, want 2", n)
			}
		})
	}
}

// TestKeepExpires has a connection come back when another has rested for too long.
func TestKeepExpires(t *testing.T) {
	s := serveScript(t, all)
	c := newClient(t, Options{BaseURL: s.url(), IdleTimeout: time.Minute})
	var conns [2]*conn
	for i := range conns {
		var err error
		if conns[i], err = c.pool.open(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	c.pool.keep(conns[0])
	conns[0].since = time.Now().Add(-time.Hour)
	c.pool.keep(conns[1])
	eventually(t, "the expired one is closed", func() bool { return s.accepted.Load() == 2 && s.open() == 1 })
	if len(c.pool.kept) != 1 || c.pool.kept[0] != conns[1] {
		t.Errorf("%d kept, want the second alone", len(c.pool.kept))
	}
}
