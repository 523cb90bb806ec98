package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"

	"pinion/internal/health"
	"pinion/internal/stats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a Server, on a free port by default, and stops it when t ends. client
// reaches it at base whatever kind of address it has. adjust changes what no Config does.
func serve(t *testing.T, cfg Config, adjust ...func(*Server)) (s *Server, client *http.Client, base string) {
	t.Helper()
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	s = New(cfg)
	for _, f := range adjust {
		f(s)
	}
	if s.Addr() != nil {
		t.Errorf("Addr() = %v before Listen", s.Addr())
	}
	if err := s.Listen(context.Background()); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, s.Addr().Network(), s.Addr().String())
		},
	}
	client = &http.Client{Transport: transport, Timeout: 10 * time.Second}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s, client, "http://admin"
}

func get(t *testing.T, client *http.Client, url string) (*http.Response, string) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestPages(t *testing.T) {
	_, client, base := serve(t, Config{})
	for path, want := range map[string]struct {
		status int
		mime   string
		body   string
	}{
		"/":                            {200, "text/plain; charset=utf-8", "/debug/pprof/"},
		"/health":                      {200, "application/json", `{"status":"ok"}` + "\n"},
		"/ready":                       {200, "application/json", `{"status":"ok"}` + "\n"},
		"/metrics":                     {200, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", "go_sched_gomaxprocs_threads"},
		"/debug/pprof/":                {200, "text/html; charset=utf-8", "goroutine"},
		"/debug/pprof/cmdline":         {200, "text/plain; charset=utf-8", "test"},
		"/debug/pprof/symbol":          {200, "text/plain; charset=utf-8", "num_symbols"},
		"/debug/pprof/heap?debug=1":    {200, "text/plain; charset=utf-8", "heap profile"},
		"/debug/pprof/goroutine":       {200, "application/octet-stream", ""},
		"/debug/pprof/nothing":         {404, "text/plain; charset=utf-8", "Unknown profile"},
		"/debug/pprof/trace?seconds=0": {200, "application/octet-stream", ""},
		"/nothing":                     {404, "text/plain; charset=utf-8", "404"},
	} {
		resp, body := get(t, client, base+path)
		if resp.StatusCode != want.status {
			t.Errorf("%s: status %d, want %d", path, resp.StatusCode, want.status)
		}
		if mime := resp.Header.Get("Content-Type"); mime != want.mime {
			t.Errorf("%s: Content-Type %q, want %q", path, mime, want.mime)
		}
		if !strings.Contains(body, want.body) {
			t.Errorf("%s: no %q in %q", path, want.body, body)
		}
	}
	for _, path := range []string{"/", "/health", "/ready", "/metrics"} {
		resp, err := client.Post(base+path, "text/plain", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: status %d", path, resp.StatusCode)
		}
		resp, err = client.Head(base + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("HEAD %s: status %d", path, resp.StatusCode)
		}
	}
}

// TestDefaultMuxIsNotServed asks for a page that package expvar, which a dependency
// imports, puts there.
func TestDefaultMuxIsNotServed(t *testing.T) {
	const path = "/debug/vars"
	if _, pattern := http.DefaultServeMux.Handler(httptest.NewRequest(http.MethodGet, path, http.NoBody)); pattern == "" {
		t.Fatalf("http.DefaultServeMux has no %s: take another page", path)
	}
	_, client, base := serve(t, Config{})
	if resp, _ := get(t, client, base+path); resp.StatusCode != http.StatusNotFound {
		t.Errorf("status %d for a page of http.DefaultServeMux", resp.StatusCode)
	}
}

func TestReady(t *testing.T) {
	st := health.New(health.Config{})
	_, client, base := serve(t, Config{Ready: st.Check})
	check := func(status int, want string) {
		t.Helper()
		resp, body := get(t, client, base+"/ready")
		if resp.StatusCode != status || body != want+"\n" {
			t.Errorf("/ready: %d %q, want %d %q", resp.StatusCode, body, status, want)
		}
		if resp, _ := get(t, client, base+"/health"); resp.StatusCode != http.StatusOK {
			t.Errorf("/health: %d", resp.StatusCode)
		}
	}
	check(503, `{"status":"unavailable","reason":"starting"}`)
	st.SetReady()
	check(200, `{"status":"ok"}`)
	st.SetDraining()
	check(503, `{"status":"unavailable","reason":"draining"}`)
}

func TestMetrics(t *testing.T) {
	reg := stats.NewRegistry(4)
	_, client, base := serve(t, Config{Stats: reg, Version: "v1.2.3"})

	// Registered after the port is up.
	reg.Counter("cache_requests_total", "Cache.", "layer", "result").With("l1", "h\"i\\t\n\xff").Add(3, 7)
	reg.Gauge("open", "Open.").Func(func() float64 { return -1.5 })
	h := reg.Histogram("took_seconds", "Took.", []float64{0.001, 0.1}, "handler").With("users")
	h.Observe(0, time.Millisecond)
	h.Observe(1, 50*time.Millisecond)
	h.Observe(2, time.Minute)
	reg.Counter("no_series_total", "None yet.", "x")

	resp, body := get(t, client, base+"/metrics")
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", resp.StatusCode, body)
	}
	for _, want := range []string{
		"# TYPE cache_requests_total counter\n",
		`cache_requests_total{layer="l1",result="h\"i\\t\n` + "\uFFFD" + `"} 7` + "\n",
		"# TYPE open gauge\nopen -1.5\n",
		"# TYPE took_seconds histogram\n",
		`took_seconds_bucket{handler="users",le="0.001"} 1` + "\n",
		`took_seconds_bucket{handler="users",le="0.1"} 2` + "\n",
		`took_seconds_bucket{handler="users",le="+Inf"} 3` + "\n",
		`took_seconds_sum{handler="users"} 60.051` + "\n",
		`took_seconds_count{handler="users"} 3` + "\n",
		fmt.Sprintf("go_sched_gomaxprocs_threads %d\n", runtime.GOMAXPROCS(0)),
		`version="v1.2.3"`,
		`goversion="` + runtime.Version() + `"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics has no %q", want)
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatalf("%v in\n%s", err, body)
	}
	if _, ok := families["build_info"]; !ok {
		t.Error("no build_info")
	}
	if _, ok := families["process_resident_memory_bytes"]; !ok && runtime.GOOS == "linux" {
		t.Error("no process metrics")
	}
}

// TestOneBadFamily has a name that the Go collector also uses.
func TestOneBadFamily(t *testing.T) {
	reg := stats.NewRegistry(1)
	reg.Counter("go_goroutines", "Not ours.").With().Add(0, 1)
	reg.Counter("good_total", "").With().Add(0, 1)
	var log bytes.Buffer
	_, client, base := serve(t, Config{Stats: reg, Log: slog.New(slog.NewTextHandler(&log, nil))})
	resp, body := get(t, client, base+"/metrics")
	if resp.StatusCode != http.StatusOK || !strings.Contains(body, "good_total 1\n") {
		t.Errorf("status %d, without good_total: %s", resp.StatusCode, body)
	}
	if !strings.Contains(log.String(), "go_goroutines") {
		t.Errorf("not logged: %q", log.String())
	}
}

func TestCollectorLints(t *testing.T) {
	reg := stats.NewRegistry(1)
	reg.Counter("a_total", "A.", "x").With("1").Add(0, 1)
	reg.Histogram("b_seconds", "B.", []float64{1}).With().Observe(0, time.Second)
	pedantic := prometheus.NewPedanticRegistry()
	pedantic.MustRegister(collector{reg})
	problems, err := testutil.GatherAndLint(pedantic)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestProfileOutlivesWriteTimeout shortens the timeout instead of waiting 30 s.
func TestProfileOutlivesWriteTimeout(t *testing.T) {
	s := New(Config{Addr: "127.0.0.1:0"})
	s.http.WriteTimeout = 300 * time.Millisecond
	if err := s.Listen(context.Background()); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, body := get(t, client, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=1", s.Addr()))
	if resp.StatusCode != http.StatusOK || len(body) == 0 {
		t.Errorf("status %d, %d bytes", resp.StatusCode, len(body))
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "admin")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "s")
	t.Run("serve", func(t *testing.T) {
		_, client, base := serve(t, Config{Addr: "unix:" + path})
		if resp, _ := get(t, client, base+"/health"); resp.StatusCode != http.StatusOK {
			t.Errorf("status %d", resp.StatusCode)
		}
	})
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket file is there after Shutdown: %v", err)
	}
}

func TestListenFails(t *testing.T) {
	s, _, _ := serve(t, Config{})
	again := New(Config{Addr: s.Addr().String()})
	err := again.Listen(context.Background())
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), s.Addr().String()) {
		t.Errorf("a taken port: %v", err)
	}
	if err := again.Serve(); err == nil {
		t.Error("Serve without a listener returned nil")
	}
	if err := New(Config{Addr: "nonsense"}).Listen(context.Background()); err == nil {
		t.Error("listening on nonsense worked")
	}
}

func TestShutdown(t *testing.T) {
	t.Run("never served", func(t *testing.T) {
		s := New(Config{Addr: "127.0.0.1:0"})
		if err := s.Listen(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if conn, err := net.Dial("tcp", s.Addr().String()); err == nil {
			_ = conn.Close()
			t.Error("the port is still open")
		}
	})
	t.Run("request that hangs", func(t *testing.T) {
		entered, cut := make(chan struct{}), atomic.Bool{}
		s := New(Config{Addr: "127.0.0.1:0", Ready: func(ctx context.Context) error {
			close(entered)
			<-ctx.Done()
			cut.Store(true)
			return ctx.Err()
		}})
		if err := s.Listen(context.Background()); err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- s.Serve() }()
		got := make(chan error, 1)
		go func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			resp, err := client.Get("http://" + s.Addr().String() + "/ready")
			if err == nil {
				_ = resp.Body.Close()
			}
			got <- err
		}()
		<-entered
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if err := <-got; err == nil {
			t.Error("the client of a request that was cut off saw no error")
		}
		for deadline := time.Now().Add(10 * time.Second); !cut.Load(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the request was not cut off")
			}
		}
	})
}
