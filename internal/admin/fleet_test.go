package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"pinion/internal/stats"
)

// crew is the cells of a test, and what a supervisor would say of them.
type crew struct {
	t *testing.T

	mu    sync.Mutex
	cells []CellStatus
	dials map[int]func(context.Context) (net.Conn, error)
}

func newCrew(t *testing.T) *crew {
	return &crew{t: t, dials: make(map[int]func(context.Context) (net.Conn, error))}
}

func (c *crew) fleet() *Fleet { return &Fleet{Cells: c.status, Dial: c.dial} }

func (c *crew) status() []CellStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]CellStatus(nil), c.cells...)
}

func (c *crew) dial(ctx context.Context, cell int) (net.Conn, error) {
	c.mu.Lock()
	dial := c.dials[cell]
	c.mu.Unlock()
	if dial == nil {
		return nil, errors.New("the cell has no process")
	}
	return dial(ctx)
}

// add makes the next cell, which is ready, and is reached by dial.
func (c *crew) add(dial func(context.Context) (net.Conn, error)) (cell int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cell = len(c.cells)
	c.cells = append(c.cells, CellStatus{Cell: cell, PID: 1000 + cell, State: StateReady})
	c.dials[cell] = dial
	return cell
}

// set changes what is said of a cell.
func (c *crew) set(cell int, state string, pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cells[cell].State, c.cells[cell].PID = state, pid
}

// real adds a cell with a private port of its own on a Unix socket.
func (c *crew) real(cfg Config, adjust ...func(*Server)) (cell int) {
	c.t.Helper()
	path := filepath.Join(c.t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		c.t.Fatal(err)
	}
	cfg.Listener = ln
	serve(c.t, cfg, adjust...)
	return c.add(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	})
}

// fake adds a cell that answers with h, on loopback.
func (c *crew) fake(h http.HandlerFunc) (cell int) {
	c.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	s := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelWarn)}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	c.t.Cleanup(func() {
		_ = s.Close()
		<-served //nolint:errcheck // it was closed
	})
	return c.add(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", ln.Addr().String())
	})
}

// hang answers when the client has left.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// supervise serves the private port of the crew's supervisor.
func (c *crew) supervise(cfg Config, adjust ...func(*Server)) *http.Client {
	c.t.Helper()
	cfg.Fleet = c.fleet()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	_, client, _ := serve(c.t, cfg, adjust...)
	return client
}

const base = "http://admin"

// metrics gets a page and checks what holds for all: it parses, no series is there
// twice, and each has one cell.
func metrics(t *testing.T, client *http.Client) map[string]*dto.MetricFamily {
	t.Helper()
	resp, body := get(t, client, base+"/metrics")
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", resp.StatusCode, body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatalf("%v in\n%s", err, body)
	}
	for name, f := range families {
		seen := make(map[string]bool)
		for _, m := range f.Metric {
			if key := labels(m); seen[key] {
				t.Errorf("%s{%s} is there twice", name, key)
			} else {
				seen[key] = true
			}
			if label(m, "cell") == "" {
				t.Errorf("%s{%s} has no cell", name, labels(m))
			}
		}
	}
	return families
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.Label {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func labels(m *dto.Metric) string {
	var all []string
	for _, l := range m.Label {
		all = append(all, l.GetName()+"="+l.GetValue())
	}
	return strings.Join(all, ",")
}

// series lists the values of a counter or gauge family, as in "a=b,cell=0 7".
func series(f *dto.MetricFamily) string {
	var all []string
	for _, m := range f.GetMetric() {
		all = append(all, fmt.Sprint(labels(m), " ", m.GetCounter().GetValue()+m.GetGauge().GetValue()))
	}
	return strings.Join(all, "; ")
}

// counted is a registry with one counter of that value.
func counted(value uint64) *stats.Registry {
	reg := stats.NewRegistry(1)
	reg.Counter("served_total", "Served.", "path").With("inline").Add(0, value)
	return reg
}

func TestFleetMetrics(t *testing.T) {
	c := newCrew(t)
	for i := range 3 {
		reg := counted(uint64(10 + i))
		reg.Gauge("open", "Open \"things\"\nand\\or more.").Func(func() float64 { return float64(-i) })
		h := reg.Histogram("took_seconds", "Took.", []float64{0.001, 0.1}, "handler").With("users")
		for range i + 1 {
			h.Observe(0, 50*time.Millisecond)
		}
		reg.Counter("odd_total", "Has a label of that name.", "cell", "zone").With("mine", "z").Add(0, 1)
		reg.Counter("odder_total", "And the name it would get.", "cell", "dd", "exported_cell").With("mine", "d", "too").Add(0, 1)
		c.real(Config{Stats: reg, Version: fmt.Sprint("v", i)})
	}
	own := stats.NewRegistry(1)
	own.Counter("cell_restarts_total", "Restarts.", "cell").With("1").Add(0, 5)
	own.Counter("relayed_total", "Relayed.").With().Add(0, 6)
	client := c.supervise(Config{Stats: own, Version: "v1.2.3"})
	families := metrics(t, client)

	for name, want := range map[string]string{
		"served_total":        "cell=0,path=inline 10; cell=1,path=inline 11; cell=2,path=inline 12",
		"open":                "cell=0 0; cell=1 -1; cell=2 -2",
		"odd_total":           "cell=0,exported_cell=mine,zone=z 1; cell=1,exported_cell=mine,zone=z 1; cell=2,exported_cell=mine,zone=z 1",
		"cell_restarts_total": "cell=1 5",
		"relayed_total":       "cell=supervisor 6",
		"cell_scrape_failed":  "cell=0 0; cell=1 0; cell=2 0",
	} {
		if got := series(families[name]); got != want {
			t.Errorf("%s: %s\nwant %s", name, got, want)
		}
	}
	if f, ok := families["odder_total"]; ok { // a series with two labels of one name spoils the page
		t.Errorf("odder_total: %v", f)
	}
	if f := families["open"]; f.GetHelp() != "Open \"things\"\nand\\or more." || f.GetType() != dto.MetricType_GAUGE {
		t.Errorf("open is a %s with help %q", f.GetType(), f.GetHelp())
	}
	took := families["took_seconds"]
	if took.GetType() != dto.MetricType_HISTOGRAM || len(took.GetMetric()) != 3 {
		t.Fatalf("took_seconds: %v", took)
	}
	for i, m := range took.Metric {
		h := m.GetHistogram()
		if h.GetSampleCount() != uint64(i+1) || math.Abs(h.GetSampleSum()-0.05*float64(i+1)) > 1e-9 || len(h.Bucket) != 3 ||
			h.Bucket[0].GetCumulativeCount() != 0 || h.Bucket[1].GetCumulativeCount() != uint64(i+1) {
			t.Errorf("took_seconds of cell %d: %v", i, h)
		}
	}
	for _, name := range []string{"go_goroutines", "process_resident_memory_bytes", "build_info"} {
		if n := len(families[name].GetMetric()); n != 4 {
			t.Errorf("%s has %d series, want one of each cell and the supervisor's", name, n)
		}
	}
	for i, want := range []string{"v0", "v1", "v2", "v1.2.3"} {
		if got := label(families["build_info"].Metric[i], "version"); got != want {
			t.Errorf("build_info %d is of version %s, want %s", i, got, want)
		}
	}
	// As another supervisor would read it.
	req, err := http.NewRequest(http.MethodGet, base+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", string(expfmt.FmtProtoDelim))
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var page bytes.Buffer
	if _, err := page.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	if again, err := parse(page.Bytes()); err != nil || len(again) < len(families) {
		t.Errorf("in protobuf: %d families, %v; in text %d", len(again), err, len(families))
	}
}

// TestFleetScrapeFails has one good cell, and one that is as bad as can be.
func TestFleetScrapeFails(t *testing.T) {
	protobuf := func(answer ...byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", string(expfmt.FmtProtoDelim))
			_, _ = w.Write(answer)
		}
	}
	const large = 100 << 20
	for name, tc := range map[string]struct {
		add  func(c *crew)
		want string // in the log
	}{
		"hangs":             {func(c *crew) { c.fake(hang) }, "no answer in time"},
		"hangs in its page": {func(c *crew) { c.fake(hangLater) }, "no answer in time"},
		"is gone":           {func(c *crew) { c.add(nil) }, "no process"},
		"hangs up": {func(c *crew) {
			c.add(func(context.Context) (net.Conn, error) {
				a, b := net.Pipe()
				return a, b.Close()
			})
		}, "error="},
		"dial hangs": {func(c *crew) {
			c.add(func(ctx context.Context) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
		}, "no answer in time"},
		"panics":  {func(c *crew) { c.fake(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }) }, "EOF"},
		"no HTTP": {func(c *crew) { c.add(speak("\x00\x01\x02 nonsense\r\n\r\n")) }, "malformed HTTP"},
		"a web": {func(c *crew) {
			c.fake(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
		}, "content type"},
		"a failure": {func(c *crew) { c.fake(http.NotFound) }, "status 404"},
		"a redirect": {func(c *crew) {
			c.fake(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
			})
		}, "status 302"},
		"garbage":          {func(c *crew) { c.fake(protobuf([]byte("garbage, more garbage")...)) }, "longer than the page"},
		"garbage in frame": {func(c *crew) { c.fake(protobuf(3, 0xff, 0xff, 0xff)) }, "proto"},
		// The decoder would allocate a terabyte: a fatal error.
		"huge frame":            {func(c *crew) { c.fake(protobuf(0x80, 0x80, 0x80, 0x80, 0x80, 0x20)) }, "longer than the page"},
		"endless length":        {func(c *crew) { c.fake(protobuf(bytes.Repeat([]byte{0xff}, 100)...)) }, "longer than the page"},
		"truncated frame":       {func(c *crew) { c.fake(protobuf(10, 1, 2)) }, "longer than the page"},
		"family without a name": {func(c *crew) { c.fake(protobuf(0)) }, "invalid metric name"},
		"100 MB": {func(c *crew) {
			sent, left := 0, make(chan struct{})
			c.t.Cleanup(func() {
				if <-left; sent > large/2 {
					c.t.Errorf("read %d bytes of a page that is too large", sent)
				}
			})
			c.fake(func(w http.ResponseWriter, _ *http.Request) {
				defer close(left)
				w.Header().Set("Content-Type", string(expfmt.FmtProtoDelim))
				piece := make([]byte, 1<<20)
				for ; sent < large; sent += len(piece) {
					if _, err := w.Write(piece); err != nil {
						return
					}
				}
			})
		}, "larger than"},
		"endless header": {func(c *crew) {
			c.fake(func(w http.ResponseWriter, _ *http.Request) {
				for i := range 100 {
					w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 10_000))
				}
			})
		}, "header"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // some wait for the timeout
			c := newCrew(t)
			c.real(Config{Stats: counted(7)})
			tc.add(c)
			var log syncBuffer
			client := c.supervise(Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, func(s *Server) {
				if strings.Contains(name, "hangs") {
					s.fleet.scrapeTimeout = 3 * time.Second
				}
			})
			families := metrics(t, client)
			if got := series(families["served_total"]); got != "cell=0,path=inline 7" {
				t.Errorf("the good cell: %s", got)
			}
			if got := series(families["cell_scrape_failed"]); got != "cell=0 0; cell=1 1" {
				t.Errorf("cell_scrape_failed: %s", got)
			}
			if n := len(families["go_goroutines"].GetMetric()); n != 2 {
				t.Errorf("go_goroutines has %d series", n)
			}
			if text := log.String(); !strings.Contains(text, "cell=1") || !strings.Contains(text, tc.want) {
				t.Errorf("logged %q, want %q", text, tc.want)
			}
		})
	}
}

// hangLater sends the beginning of an answer.
func hangLater(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", string(expfmt.FmtProtoDelim))
	_, _ = w.Write([]byte{100, 1})
	_ = http.NewResponseController(w).Flush()
	hang(w, r)
}

// speak answers every connection with the same bytes.
func speak(answer string) func(context.Context) (net.Conn, error) {
	return func(context.Context) (net.Conn, error) {
		a, b := net.Pipe()
		go func() {
			defer func() { _ = b.Close() }()
			_, _ = b.Read(make([]byte, 4096))
			_, _ = b.Write([]byte(answer))
		}()
		return a, nil
	}
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestFleetConflicts has cells that disagree about what a name means.
func TestFleetConflicts(t *testing.T) {
	c := newCrew(t)
	for i := range 3 {
		reg := counted(uint64(i))
		switch i {
		case 0:
			reg.Counter("a_total", "A.").With().Add(0, 1)
			reg.Counter("b", "B.").With().Add(0, 1)
		case 1:
			reg.Counter("a_total", "Another A.").With().Add(0, 2)
			reg.Gauge("b", "B.").Func(func() float64 { return 2 })
		case 2:
			reg.Counter("a_total", "A.").With().Add(0, 3)
			reg.Histogram("b", "B.", []float64{1}).With().Observe(0, time.Second)
		}
		c.real(Config{Stats: reg})
	}
	var log syncBuffer
	client := c.supervise(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	families := metrics(t, client)
	for name, want := range map[string]string{
		"served_total": "cell=0,path=inline 0; cell=1,path=inline 1; cell=2,path=inline 2",
		"a_total":      "cell=0 1; cell=1 2; cell=2 3", // words are no reason to lose numbers
		"b":            "cell=0 1",
	} {
		if got := series(families[name]); got != want {
			t.Errorf("%s: %s\nwant %s", name, got, want)
		}
	}
	if help := families["a_total"].GetHelp(); help != "A." {
		t.Errorf("help of a_total: %q", help)
	}
	if text := log.String(); !strings.Contains(text, "family b has type GAUGE but should have COUNTER") {
		t.Errorf("logged %q", text)
	}
}

// A cell without a process is absent, and so is one whose process ends meanwhile.
func TestFleetAbsentCell(t *testing.T) {
	for name, during := range map[string]bool{"before": false, "during": true} {
		t.Run(name, func(t *testing.T) {
			c := newCrew(t)
			c.real(Config{Stats: counted(7)})
			ends := func(context.Context) (net.Conn, error) {
				c.set(1, "restarting", 0)
				return nil, errors.New("gone")
			}
			c.add(ends)
			if !during {
				_, _ = ends(context.Background())
			}
			client := c.supervise(Config{})
			families := metrics(t, client)
			if got := series(families["cell_scrape_failed"]); got != "cell=0 0" {
				t.Errorf("cell_scrape_failed: %s", got)
			}
			if got := series(families["served_total"]); got != "cell=0,path=inline 7" {
				t.Errorf("served_total: %s", got)
			}
		})
	}
	t.Run("all", func(t *testing.T) {
		c := newCrew(t)
		c.add(nil)
		c.set(0, "gone", 0)
		client := c.supervise(Config{})
		families := metrics(t, client)
		if families["go_goroutines"] == nil || families["cell_scrape_failed"] != nil {
			t.Errorf("go_goroutines %v, cell_scrape_failed %v", families["go_goroutines"], families["cell_scrape_failed"])
		}
	})
}

// TestGivenListener serves on what it was given, and closes it.
func TestGivenListener(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("serve", func(t *testing.T) {
		s, client, base := serve(t, Config{Addr: "nonsense", Listener: ln})
		if s.Addr() != ln.Addr() {
			t.Errorf("Addr() = %v", s.Addr())
		}
		if resp, _ := get(t, client, base+"/health"); resp.StatusCode != http.StatusOK {
			t.Errorf("status %d", resp.StatusCode)
		}
	})
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Shutdown: %v", err)
	}
}
