package accesslog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"pinion/handlers"
	"pinion/internal/stats"
)

// safeBuffer is an io.Writer that a test can read meanwhile.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

type fixture struct {
	*Log
	reg  *stats.Registry
	slog *safeBuffer
}

func start(t *testing.T, cfg Config) fixture {
	t.Helper()
	f := fixture{reg: stats.NewRegistry(2), slog: new(safeBuffer)}
	cfg.Stats = f.reg
	cfg.Log = slog.New(slog.NewTextHandler(f.slog, nil))
	f.Log = New(cfg)
	return f
}

func (f fixture) close(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := f.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := f.reg.Err(); err != nil {
		t.Fatal(err)
	}
}

func (f fixture) count(name string) int {
	for _, fam := range f.reg.Snapshot() {
		if fam.Name == name {
			return int(fam.Series[0].Value)
		}
	}
	return -1
}

func entry() *handlers.Entry {
	return &handlers.Entry{
		Time:     time.Date(2026, 1, 2, 15, 4, 5, 678e6, time.UTC),
		Duration: 45*time.Microsecond + 999, Handler: "users", Method: "GET",
		Path: []byte("/api/users"), Query: []byte("ids=1,2"), RequestID: []byte("r-1"),
		Status: 200, Bytes: 123, Remote: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711},
	}
}

// line records e alone and returns what is written.
func line(t *testing.T, e *handlers.Entry) string {
	t.Helper()
	var out bytes.Buffer
	f := start(t, Config{Mode: All(), Out: &out})
	f.Record(0, e)
	f.close(t)
	return out.String()
}

func TestLine(t *testing.T) {
	want := `{"time":"2026-01-02T15:04:05.678Z","request_id":"r-1","remote":"192.0.2.1:4711","method":"GET",` +
		`"path":"/api/users","query":"ids=1,2","handler":"users","status":200,"bytes":123,"duration_us":45}` + "\n"
	if got := line(t, entry()); got != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}

	e := entry()
	e.Query, e.RequestID, e.Remote, e.Panic, e.Status = nil, nil, nil, true, 500
	want = `{"time":"2026-01-02T15:04:05.678Z","method":"GET",` +
		`"path":"/api/users","handler":"users","status":500,"bytes":123,"duration_us":45,"panic":true}` + "\n"
	if got := line(t, e); got != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}
}

type oddAddr struct{}

func (oddAddr) Network() string { return "odd" }
func (oddAddr) String() string  { return "a\"b\n" }

func TestRemote(t *testing.T) {
	for _, tc := range []struct {
		addr net.Addr
		want string
	}{
		{&net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 80}, `"remote":"[2001:db8::1]:80"`},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 80, Zone: `e"0`}, `"remote":"[fe80::1%e\"0]:80"`},
		{&net.TCPAddr{Port: 80}, `"remote":":80"`},
		{&net.UnixAddr{Name: "@", Net: "unix"}, `"remote":"@"`},
		{&net.UnixAddr{Net: "unix"}, `:05.678Z","request_id":"r-1","method"`},
		{(*net.TCPAddr)(nil), `:05.678Z","request_id":"r-1","method"`},
		{(*net.UnixAddr)(nil), `:05.678Z","request_id":"r-1","method"`},
		{oddAddr{}, `"remote":"a\"b\n"`},
	} {
		e := entry()
		e.Remote = tc.addr
		if got := line(t, e); !strings.Contains(got, tc.want) || !json.Valid([]byte(got)) {
			t.Errorf("%#v: %s has no %s", tc.addr, got, tc.want)
		}
	}
}

func TestHostileText(t *testing.T) {
	for name, path := range map[string]string{
		"quotes":         `/"},{"status":999`,
		"newline":        "/a\nb\r\n{}",
		"invalid UTF-8":  "/\xff\xc3(\xed\xa0\x80",
		"long":           "/" + strings.Repeat("a", 5000),
		"long runes":     strings.Repeat("é…🙂", 500),
		"long escapes":   strings.Repeat("\x00", 5000),
		"long not UTF-8": strings.Repeat("\x80", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			e := entry()
			e.Path, e.Query = []byte(path), []byte(path)
			got := line(t, e)
			if strings.Count(got, "\n") != 1 || !utf8.ValidString(got) {
				t.Fatalf("not one line of UTF-8: %q", got)
			}
			var m struct {
				Path     string `json:"path"`
				PathLen  int    `json:"path_len"`
				Query    string `json:"query"`
				QueryLen int    `json:"query_len"`
				Status   int    `json:"status"`
			}
			if err := json.Unmarshal([]byte(got), &m); err != nil {
				t.Fatalf("%v: %q", err, got)
			}
			if m.Status != 200 {
				t.Errorf("status %d", m.Status)
			}
			if m.Path != m.Query || m.PathLen != m.QueryLen {
				t.Errorf("path %q (%d) and query %q (%d) differ", m.Path, m.PathLen, m.Query, m.QueryLen)
			}
			if len(path) <= textBytes {
				if m.PathLen != 0 || m.Path != strings.ToValidUTF8(path, "\uFFFD") && name != "invalid UTF-8" {
					t.Errorf("path %q, path_len %d", m.Path, m.PathLen)
				}
				return
			}
			if m.PathLen != len(path) {
				t.Errorf("path_len %d, want %d", m.PathLen, len(path))
			}
			if utf8.ValidString(path) && (!strings.HasPrefix(path, m.Path) || len(m.Path) > textBytes || len(m.Path) < textBytes-3) {
				t.Errorf("cut to %d bytes: %q", len(m.Path), m.Path)
			}
		})
	}
}

// TestRecordCopies changes the entry right after Record.
func TestRecordCopies(t *testing.T) {
	var out bytes.Buffer
	f := start(t, Config{Mode: All(), Out: &out})
	e := entry()
	for i := range 3 {
		copy(e.Path, fmt.Sprintf("/api/use%ds", i))
		f.Record(0, e)
		clear(e.Path)
	}
	f.close(t)
	for i := range 3 {
		if want := fmt.Sprintf(`"path":"/api/use%ds"`, i); !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, out.String())
		}
	}
}

func TestWants(t *testing.T) {
	for _, tc := range []struct {
		mode   string
		status map[int]int // status -> how many of 100
	}{
		{"off", map[int]int{200: 0, 404: 0, 500: 0}},
		{"all", map[int]int{200: 100, 404: 100, 500: 100}},
		{"errors", map[int]int{200: 0, 302: 0, 399: 0, 400: 100, 404: 100, 503: 100}},
		{"1/1", map[int]int{200: 100, 500: 100}},
		{"1/10", map[int]int{200: 10, 404: 10, 500: 100, 503: 100}},
		{"1/1000", map[int]int{200: 0, 500: 100}},
	} {
		for status, want := range tc.status {
			mode, err := ParseMode(tc.mode)
			if err != nil {
				t.Fatal(err)
			}
			f := start(t, Config{Mode: mode, Out: io.Discard})
			got := 0
			for range 100 {
				if f.Wants(7, status) {
					got++
				}
			}
			f.close(t)
			if got != want {
				t.Errorf("%s, status %d: %d of 100, want %d", tc.mode, status, got, want)
			}
		}
	}
}

// TestLineComesSoon checks that a lone line is written without a Close or a further
// one, at the start and after a pause.
func TestLineComesSoon(t *testing.T) {
	out := new(safeBuffer)
	f := start(t, Config{Mode: All(), Out: out})
	defer f.close(t)
	for i := 1; i <= 3; i++ {
		f.Record(0, entry())
		for deadline := time.Now().Add(10 * time.Second); strings.Count(out.String(), "\n") != i; {
			if time.Now().After(deadline) {
				t.Fatalf("line %d was not written", i)
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2 * linger)
	}
}

// gate is a writer that blocks until it is opened.
type gate struct {
	entered chan struct{} // closed at the first Write
	open    chan struct{}
	once    sync.Once
	bytes.Buffer
}

func newGate() *gate { return &gate{entered: make(chan struct{}), open: make(chan struct{})} }

func (g *gate) Write(p []byte) (int, error) {
	g.once.Do(func() { close(g.entered) })
	<-g.open
	return g.Buffer.Write(p)
}

// TestBlockedWriter is the promise of the package: while the writer hangs, requests
// go on, and each line is either written in the end or counted as dropped.
func TestBlockedWriter(t *testing.T) {
	const lines, goroutines, each = 64, 8, 500
	g := newGate()
	f := start(t, Config{Mode: All(), Out: g, Lines: lines})
	f.Record(0, entry())
	<-g.entered

	// If Record waited, this would never end.
	var wg sync.WaitGroup
	for shard := range uint64(goroutines) {
		wg.Go(func() {
			e := entry()
			for range each {
				f.Record(shard, e)
			}
		})
	}
	wg.Wait()
	recorded := 1 + goroutines*each
	if got, want := f.count("access_log_dropped_total"), goroutines*each-lines; got != want {
		t.Errorf("%d dropped while the writer hung, want %d", got, want)
	}

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := f.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Close with a writer that hangs: %v", err)
	}
	f.Record(0, entry()) // after Close: dropped
	recorded++

	close(g.open)
	f.close(t)
	written := strings.Count(g.String(), "\n")
	if got := f.count("access_log_written_total"); got != written {
		t.Errorf("counted %d written, found %d", got, written)
	}
	if dropped := f.count("access_log_dropped_total"); written+dropped != recorded {
		t.Errorf("%d written + %d dropped, want %d together", written, dropped, recorded)
	}
	if want := 1 + lines; written != want {
		t.Errorf("%d written, want %d", written, want)
	}
	checkLines(t, g.Bytes())
}

func checkLines(t *testing.T, out []byte) {
	t.Helper()
	for l := range bytes.Lines(out) {
		if !json.Valid(l) {
			t.Fatalf("not JSON: %q", l)
		}
	}
}

// TestManyProducers races producers with one another, with a writer that keeps up,
// and with Close.
func TestManyProducers(t *testing.T) {
	const goroutines, each = 8, 3000
	var out bytes.Buffer
	f := start(t, Config{Mode: All(), Out: &out, Lines: 128})
	closeAt := make(chan struct{})
	var wg sync.WaitGroup
	for g := range uint64(goroutines) {
		wg.Go(func() {
			e := entry()
			for i := range each {
				e.Path = fmt.Appendf(e.Path[:0], "/%d/%d", g, i)
				f.Record(g, e)
				if g == 0 && i == each/2 {
					close(closeAt)
				}
			}
		})
	}
	<-closeAt
	f.close(t)
	wg.Wait()

	checkLines(t, out.Bytes())
	seen := make(map[string]bool)
	last := make(map[string]int)
	for l := range strings.Lines(out.String()) {
		var m struct{ Path string }
		if err := json.Unmarshal([]byte(l), &m); err != nil {
			t.Fatal(err)
		}
		if seen[m.Path] {
			t.Errorf("%s was written twice", m.Path)
		}
		seen[m.Path] = true
		var g string
		var i int
		if _, err := fmt.Sscanf(strings.ReplaceAll(m.Path, "/", " "), " %s %d", &g, &i); err != nil {
			t.Fatal(err)
		}
		if before, ok := last[g]; ok && i < before {
			t.Errorf("producer %s: %d was written after %d", g, i, before)
		}
		last[g] = i
	}
	if dropped := f.count("access_log_dropped_total"); len(seen)+dropped != goroutines*each {
		t.Errorf("%d written + %d dropped, want %d together", len(seen), dropped, goroutines*each)
	}
	if len(seen) == 0 {
		t.Error("nothing was written")
	}
}

// broken takes some bytes of each Write and then fails, while told to.
type broken struct {
	takes int
	fails bool
	bytes.Buffer
}

func (b *broken) Write(p []byte) (int, error) {
	if !b.fails {
		return b.Buffer.Write(p)
	}
	n := min(b.takes, len(p))
	_, _ = b.Buffer.Write(p[:n])
	return n, errors.New("disk full")
}

// TestFailingWriter drives the writer without its goroutine, to fix what a batch is.
func TestFailingWriter(t *testing.T) {
	reg := stats.NewRegistry(1)
	told := new(safeBuffer)
	out := &broken{}
	w := writer{
		out: out, log: slog.New(slog.NewTextHandler(told, nil)),
		written: reg.Counter("written_total", "").With(),
		failed:  reg.Counter("failed_total", "").With(),
		dropped: reg.Counter("dropped_total", "").With(),
	}
	check := func(step string, written, dropped, failed uint64) {
		t.Helper()
		if w.written.Value() != written || w.dropped.Value() != dropped || w.failed.Value() != failed {
			t.Errorf("%s: %d written, %d dropped, %d failed; want %d, %d, %d", step,
				w.written.Value(), w.dropped.Value(), w.failed.Value(), written, dropped, failed)
		}
	}
	batch := []byte("{1}\n{2}\n{3}\n")
	w.write(batch)
	check("well", 3, 0, 0)
	out.fails, out.takes = true, 6
	w.write(batch)
	check("torn", 4, 2, 1)
	out.takes = 0
	w.write(batch)
	check("nothing taken", 4, 5, 2)
	out.fails = false
	w.write(batch)
	check("well again", 7, 5, 2)
	if want := "{1}\n{2}\n{3}\n{1}\n{2\n{1}\n{2}\n{3}\n"; out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
	for range 100 {
		out.fails = !out.fails
		w.write(batch)
	}
	log := told.String()
	if n := strings.Count(log, "cannot be written"); n != 1 || !strings.Contains(log, `error="disk full"`) {
		t.Errorf("told %d times that it fails: %s", n, log)
	}
	if n := strings.Count(log, "written again"); n != 1 {
		t.Errorf("told %d times that it works: %s", n, log)
	}
}

// liar returns counts that no io.Writer may.
type liar int

func (l liar) Write([]byte) (int, error) { return int(l), nil }

func TestWrongCounts(t *testing.T) {
	for _, n := range []int{-5, 0, 1, 1 << 20} {
		f := start(t, Config{Mode: All(), Out: liar(n)})
		for range 10 {
			f.Record(0, entry())
		}
		f.close(t)
		if got := f.count("access_log_written_total") + f.count("access_log_dropped_total"); got != 10 {
			t.Errorf("a Write that returns %d: %d lines accounted for, want 10", n, got)
		}
	}
}

// TestLongLinesAreForgotten checks that a slot gives back what a long line took.
func TestLongLinesAreForgotten(t *testing.T) {
	r := newRing(4)
	for range 20 {
		s, pos, ok := r.claim()
		if !ok {
			t.Fatal("full")
		}
		s.buf = append(s.buf[:0], make([]byte, 3*keepBytes)...)
		s.publish(pos)
		if got, ok := r.next(); !ok || len(got) != 3*keepBytes {
			t.Fatalf("took %d bytes, %v", len(got), ok)
		}
		r.drop()
	}
	for i := range r.slots {
		if c := cap(r.slots[i].buf); c > keepBytes {
			t.Errorf("slot %d keeps %d bytes", i, c)
		}
	}
}
