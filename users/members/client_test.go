package members

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pinion/users"
)

func mustAsk(t testing.TB, c *Client, ids ...int64) {
	t.Helper()
	got, err := c.Members(context.Background(), ids)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if got[id] != (users.Member{Level: "gold", Points: id}) {
			t.Fatalf("id %d: got %v", id, got[id])
		}
	}
}

func TestNoIDs(t *testing.T) {
	got, err := newClient(t, Options{BaseURL: "http://127.0.0.1:1"}).Members(context.Background(), nil)
	if err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestSplit(t *testing.T) {
	var mu sync.Mutex
	var sizes []int
	s := serveScript(t, func(n int, ids []int64) string {
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, len(ids))
		if !slices.IsSorted(ids) {
			t.Errorf("not ascending: %v", ids)
		}
		return all(n, ids)
	})
	var ids []int64
	for i := range 600 {
		ids = append(ids, int64(1e18)-int64(i), int64(1e18)-int64(i))
	}
	mustAsk(t, newClient(t, Options{BaseURL: s.url() + "/base/"}), ids...)
	if want := []int{256, 256, 88}; !slices.Equal(sizes, want) {
		t.Errorf("asked for %v ids, want %v", sizes, want)
	}
	if n := s.accepted.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// TestRestart has the service close what rests: the next request must not notice.
func TestRestart(t *testing.T) {
	s := serveScript(t, all)
	c := newClient(t, Options{BaseURL: s.url(), MaxConns: 8})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { mustAsk(t, c, int64(i+1)) })
	}
	wg.Wait()
	for range 3 {
		s.cut()
		eventually(t, "all connections are closed", func() bool { return s.open() == 0 })
		mustAsk(t, c, 1)
	}
}

// TestRetry has the service close a kept connection when the request has arrived.
func TestRetry(t *testing.T) {
	var s *script
	s = serveScript(t, func(n int, ids []int64) string {
		if n == 2 {
			s.cut()
		}
		return all(n, ids)
	})
	c := newClient(t, Options{BaseURL: s.url()})
	mustAsk(t, c, 1)
	mustAsk(t, c, 1)
	if n := s.requests.Load(); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

// TestNoRetryOfAnAnswer makes sure that only a kept connection earns a second try.
func TestNoRetryOfAnAnswer(t *testing.T) {
	s := serveScript(t, func(int, []int64) string { return "HTTP/1.1 200" })
	s.closing = true
	_, err := newClient(t, Options{BaseURL: s.url()}).Members(context.Background(), []int64{1})
	if !errors.Is(err, ErrAnswer) || s.requests.Load() != 1 {
		t.Errorf("got %v after %d requests", err, s.requests.Load())
	}
}

func TestRefused(t *testing.T) {
	s := serveScript(t, all)
	c := newClient(t, Options{BaseURL: s.url()})
	mustAsk(t, c, 1)
	s.stop()
	_, err := c.Members(context.Background(), []int64{1})
	if err == nil || errors.Is(err, ErrAnswer) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v", err)
	}
}

// TestSurplus has an answer that is followed by another: the next request must not get it.
func TestSurplus(t *testing.T) {
	s := serveScript(t, func(n int, ids []int64) string {
		if n == 1 {
			return all(n, ids) + ok(`{"members":[{"id":2,"level":"wrong","points":0}]}`)
		}
		return all(n, ids)
	})
	c := newClient(t, Options{BaseURL: s.url()})
	mustAsk(t, c, 1)
	mustAsk(t, c, 2)
	if n := s.accepted.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

func TestConnectionClose(t *testing.T) {
	s := serveScript(t, func(n int, ids []int64) string {
		return strings.Replace(all(n, ids), "\r\n", "\r\nConnection: close\r\n", 1)
	})
	c := newClient(t, Options{BaseURL: s.url()})
	mustAsk(t, c, 1)
	mustAsk(t, c, 1)
	if n := s.accepted.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

func TestIdleTimeout(t *testing.T) {
	s := serveScript(t, all)
	c := newClient(t, Options{BaseURL: s.url(), IdleTimeout: time.Nanosecond})
	mustAsk(t, c, 1)
	time.Sleep(time.Millisecond)
	mustAsk(t, c, 1)
	if n := s.accepted.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

func TestTimeout(t *testing.T) {
	s := serveScript(t, func(int, []int64) string { return "" })
	c := newClient(t, Options{BaseURL: s.url(), Timeout: 20 * time.Millisecond})
	_, err := c.Members(context.Background(), []int64{1})
	if !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want a deadline that is not the caller's", err)
	}
	eventually(t, "the connection is closed", func() bool { return s.open() == 0 })
}

// TestLeave has callers leave, by deadline and by cancel, together and while others wait
// for a connection: they must go at once, and leave nothing behind.
func TestLeave(t *testing.T) {
	const callers, conns = 1000, 4
	for name, leave := range map[string]func() (context.Context, context.CancelFunc){
		"deadline": func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), 100*time.Millisecond)
		},
		"cancel": func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			stop := time.AfterFunc(100*time.Millisecond, cancel)
			return ctx, func() { stop.Stop(); cancel() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			hang := make(chan struct{})
			s := serveScript(t, func(n int, ids []int64) string {
				select {
				case <-hang:
					return all(n, ids)
				default:
					return ""
				}
			})
			c := newClient(t, Options{BaseURL: s.url(), MaxConns: conns, Timeout: time.Minute})
			live := countConns(c)
			ctx, cancel := leave()
			defer cancel()
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					if _, err := c.Members(ctx, []int64{1}); !errors.Is(err, ctx.Err()) {
						t.Errorf("got %v", err)
					}
				})
			}
			wg.Wait()
			if n := live.most.Load(); n > conns {
				t.Errorf("%d connections, want at most %d", n, conns)
			}
			eventually(t, "all connections are closed", func() bool { return s.open() == 0 })
			close(hang)
			mustAsk(t, c, 1)
		})
	}
}

// connCounter counts the open connections of a client.
type connCounter struct{ now, most atomic.Int64 }

// countedConn is an open one.
type countedConn struct {
	net.Conn
	close func()
}

// NetConn lets the pool see the socket.
func (c countedConn) NetConn() net.Conn { return c.Conn }

func (c countedConn) Close() error {
	c.close()
	return c.Conn.Close()
}

func countConns(c *Client) *connCounter {
	n := new(connCounter)
	dial := c.pool.dial
	c.pool.dial = func(ctx context.Context) (net.Conn, error) {
		nc, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		now := n.now.Add(1)
		for most := n.most.Load(); now > most && !n.most.CompareAndSwap(most, now); most = n.most.Load() {
		}
		return countedConn{nc, sync.OnceFunc(func() { n.now.Add(-1) })}, nil
	}
	return n
}

// TestMaxConns holds many callers to a few connections, which they must share.
func TestMaxConns(t *testing.T) {
	s := serveScript(t, all)
	c := newClient(t, Options{BaseURL: s.url(), MaxConns: 3})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for j := range 20 {
				mustAsk(t, c, int64(i*100+j+1))
			}
		})
	}
	wg.Wait()
	if n := s.accepted.Load(); n > 3 {
		t.Errorf("%d connections, want at most 3", n)
	}
}

func TestClose(t *testing.T) {
	s := serveScript(t, func(int, []int64) string { return "" })
	c := newClient(t, Options{BaseURL: s.url(), MaxConns: 1})
	errs := make(chan error, 3)
	for range 3 { // one in flight, two that wait
		go func() {
			_, err := c.Members(context.Background(), []int64{1})
			errs <- err
		}()
	}
	eventually(t, "a request is in flight", func() bool { return s.requests.Load() == 1 })
	c.Close()
	c.Close()
	for range 3 {
		if err := <-errs; err == nil {
			t.Error("a request survived Close")
		}
	}
	if _, err := c.Members(context.Background(), []int64{1}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

func TestTLS(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		_, _ = w.Write([]byte(`{"members":[{"id":1,"level":"gold","points":1}]}`))
	})
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // one client is meant to leave in the handshake
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	c := newClient(t, Options{BaseURL: s.URL, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}})
	mustAsk(t, c, 1)
	mustAsk(t, c, 1)
	_, err := newClient(t, Options{BaseURL: s.URL}).Members(context.Background(), []int64{1})
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		t.Errorf("got %v, want an unknown authority", err)
	}
	c.Close() // before the server, which waits for its connections
}

func BenchmarkMembers(b *testing.B) {
	s := serveScript(b, all)
	c := newClient(b, Options{BaseURL: s.url()})
	ids := make([]int64, MaxIDs)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Members(context.Background(), ids); err != nil {
			b.Fatal(err)
		}
	}
}
