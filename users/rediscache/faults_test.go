package rediscache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"pinion/internal/testserver"
	"pinion/users"
)

// recovery is how long after Redis is back everything must work again.
const recovery = 2 * time.Second

// wantWorking makes each kind of call once, and wants all of them to work.
func wantWorking(t *testing.T, c *Cache, n *news) {
	t.Helper()
	within(t, recovery, "tracking is on again", n.tracking)
	void(t, c, 1)
	for name, err := range calls(context.Background(), c) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	void(t, c, 1)
	store(t, c, users.SharedEntry{ID: 1, Lease: lease(t, c, 1), JSON: []byte("{}")})
	wantState(t, c, 1, "{}")
	before := n.void(1)
	void(t, c, 1)
	eventually(t, "a removal is heard of", func() bool { return n.void(1) > before })
	if err := c.Ready(context.Background()); err != nil {
		t.Error(err)
	}
}

// wantDown makes each kind of call once, and wants all of them to fail at once.
func wantDown(t *testing.T, c *Cache) {
	t.Helper()
	began := time.Now()
	for name, err := range calls(context.Background(), c) {
		if !errors.Is(err, ErrDown) {
			t.Errorf("%s: got %v, want ErrDown", name, err)
		}
	}
	if err := c.Ready(context.Background()); !errors.Is(err, ErrDown) {
		t.Errorf("Ready: %v", err)
	}
	if d := time.Since(began); d > 5*time.Second { // of Timeouts of 10 s
		t.Errorf("it took %v", d)
	}
}

func TestRestart(t *testing.T) {
	s := testserver.Redis(t)
	c, n := run(t, Options{URL: s.DSN()})
	wantWorking(t, c, n)
	put(t, c, 5, users.Attribute{Key: "k"})
	s.Stop()
	eventually(t, "the loss is noticed", func() bool { return c.Ready(context.Background()) != nil })
	if n.tracking() {
		t.Error("tracking is said to be on")
	}
	wantDown(t, c)
	s.Restart()
	wantWorking(t, c, n)
	if len(attributes(t, c, 5)) != 0 { // so says testserver; this is a restart without data
		t.Error("the data is still there")
	}
	s.Kill()
	s.Restart()
	wantWorking(t, c, n)
	if got := n.states(); !strings.HasPrefix(got, "-+-+-+") || strings.Contains(got, "++") {
		t.Errorf("tracking %s", got)
	}
}

func TestOpenWhileDown(t *testing.T) {
	s := testserver.Redis(t)
	s.Stop()
	var log bytes.Buffer
	opts := Options{URL: s.DSN(), Log: slog.New(slog.NewTextHandler(&log, nil))}
	n := new(news)
	n.attach(&opts)
	c := open(t, opts)
	if !strings.Contains(log.String(), "redis does not answer") {
		t.Errorf("log %q", &log)
	}
	wantDown(t, c)
	done := make(chan struct{})
	go func() { defer close(done); c.Run(context.Background()) }()
	time.Sleep(50 * time.Millisecond) // some attempts fail
	s.Restart()
	wantWorking(t, c, n)
	c.Close()
	<-done
	if n.states() != "-+-" {
		t.Errorf("tracking %s", n.states())
	}
}

func TestHang(t *testing.T) {
	s := testserver.Redis(t)
	c, n := run(t, Options{URL: s.DSN(), Timeout: 30 * time.Second})
	wantWorking(t, c, n)
	before := runtime.NumGoroutine()

	s.Pause()
	defer s.Resume()
	paused := time.Now()
	// Callers with little time, many more than may ever be in flight. They must go when
	// it is up, and leave no pile of goroutines.
	var wg sync.WaitGroup
	var most int
	for range 100 {
		wg.Go(func() {
			for range 20 {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
				if _, err := c.Lookup(ctx, []int64{1}); err == nil {
					t.Error("a paused server has answered")
				}
				cancel()
			}
		})
	}
	// And one with much: it is sent away when the loss is noticed.
	wg.Go(func() {
		if err := c.Void(context.Background(), 1); !errors.Is(err, ErrDown) {
			t.Errorf("got %v, want ErrDown", err)
		}
	})
	within(t, 10*time.Second, "the loss is noticed", func() bool {
		most = max(most, runtime.NumGoroutine())
		return !n.tracking()
	})
	noticed := time.Since(paused)
	wg.Wait()
	t.Logf("noticed after %v, all had left after %v, at most %d goroutines", noticed, time.Since(paused), most)
	if limit := before + 101 + 2*maxCalls; most > limit {
		t.Errorf("%d goroutines, want at most %d", most, limit)
	}
	if noticed > 1500*time.Millisecond {
		t.Errorf("noticed after %v", noticed)
	}
	eventually(t, "calls fail at once", func() bool { return c.Ready(context.Background()) != nil })
	wantDown(t, c)
	eventually(t, "the callers' goroutines have ended", func() bool { return runtime.NumGoroutine() <= before+5 })
	s.Resume()
	wantWorking(t, c, n)
	eventually(t, "the goroutines are back to where they were", func() bool { return runtime.NumGoroutine() <= before+5 })
}

// TestCloseWhileHanging must not wait for a server that never answers.
func TestCloseWhileHanging(t *testing.T) {
	s := testserver.Redis(t)
	c, n := run(t, Options{URL: s.DSN(), Timeout: time.Minute})
	wantWorking(t, c, n)
	s.Pause()
	defer s.Resume()
	failed := make(chan error, 1)
	go func() { failed <- c.Void(context.Background(), 1) }()
	time.Sleep(20 * time.Millisecond)
	began := time.Now()
	c.Close()
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("Close took %v", d)
	}
	if err := <-failed; err == nil {
		t.Error("a call survived Close")
	}
}

// toxic is a proxy before a server.
type toxic struct{ *toxiproxy.Proxy }

func behindToxiproxy(t *testing.T, s *testserver.Server) toxic {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	p := toxiproxy.NewProxy(server, "redis", "127.0.0.1:0", s.Addr())
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return toxic{p}
}

func (p toxic) add(t *testing.T, kind, attributes string) {
	t.Helper()
	text := fmt.Sprintf(`{"name":"it","type":%q,"stream":"downstream","attributes":%s}`, kind, attributes)
	if _, err := p.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
}

func (p toxic) reset() { p.Toxics.ResetToxics(context.Background()) }

// TestCutAnswers ends connections in the middle of an answer.
func TestCutAnswers(t *testing.T) {
	s := shared(t)
	p := behindToxiproxy(t, s)
	direct, _ := run(t, Options{URL: s.DSN()})
	json := []byte(strings.Repeat(`{"id":1}`, 100))
	store(t, direct, users.SharedEntry{ID: 1, Lease: lease(t, direct, 1), JSON: json})
	c, n := run(t, Options{URL: "redis://" + p.Listen})
	for _, size := range []int{0, 1, 5, 100, 500, 900} {
		p.add(t, "limit_data", fmt.Sprintf(`{"bytes":%d}`, size))
		for range 5 {
			found, err := c.Lookup(context.Background(), []int64{1})
			if err != nil && !errors.Is(err, ErrDown) {
				t.Errorf("%d bytes: got %v", size, err)
			}
			if err == nil && string(found[0].JSON) != string(json) {
				t.Errorf("%d bytes: got %+v", size, found[0])
			}
		}
		p.reset()
		within(t, recovery, "tracking is on again", n.tracking)
		eventually(t, "it works again", func() bool {
			found, err := c.Lookup(context.Background(), []int64{1})
			return err == nil && string(found[0].JSON) == string(json)
		})
	}
}

// TestSlow answers later than the callers, or Timeout, allow.
func TestSlow(t *testing.T) {
	p := behindToxiproxy(t, shared(t))
	c, n := run(t, Options{URL: "redis://" + p.Listen, Timeout: 100 * time.Millisecond})
	wantWorking(t, c, n)
	p.add(t, "latency", `{"latency":300}`)
	for range 3 {
		_, err := c.Lookup(context.Background(), []int64{1})
		if !errors.Is(err, ErrDown) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want ErrDown", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		if _, err := c.Lookup(ctx, []int64{1}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the caller's deadline", err)
		}
		cancel()
	}
	if n.states() != "-+" {
		t.Errorf("tracking %s: slow is not lost", n.states())
	}
	p.reset()
	eventually(t, "what was late has come", func() bool {
		_, err := c.Lookup(context.Background(), []int64{1})
		return err == nil
	})
	wantWorking(t, c, n)
}

// TestMaxClients has Redis refuse connections by an answer, which is not silence.
func TestMaxClients(t *testing.T) {
	s := testserver.Redis(t)
	c, n := run(t, Options{URL: s.DSN(), Conns: 1})
	wantWorking(t, c, n)
	raw(t, s.Addr(), "CONFIG", "SET", "maxclients", "1")
	for line := range strings.Lines(rawLast(t, c)) {
		if strings.Contains(line, "flags=t") {
			_, err := c.do(context.Background(), c.client.B().Arbitrary("CLIENT", "KILL", "ID", strings.TrimPrefix(strings.Fields(line)[0], "id=")).Build())
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, "tracking is lost", func() bool { return !n.tracking() })
	for range 20 { // commands have their connection still
		if _, err := c.Attributes(context.Background(), []int64{1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if _, err := c.do(context.Background(), c.client.B().Arbitrary("CONFIG", "SET", "maxclients", "1000").Build()); err != nil {
		t.Fatal(err)
	}
	wantWorking(t, c, n)
}

// rawLast lists the clients over the connection of c.
func rawLast(t *testing.T, c *Cache) string {
	t.Helper()
	results, err := c.do(context.Background(), c.client.B().Arbitrary("CLIENT", "LIST").Build())
	if err != nil {
		t.Fatal(err)
	}
	text, err := results[0].ToString()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
