package cell

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"pinion/affinity"
)

// patience bounds every wait of the tests.
const patience = 30 * time.Second

// lines is the log of a supervisor.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// index returns where what is in the log, or fails.
func (l *lines) index(t *testing.T, what string) int {
	t.Helper()
	i := strings.Index(l.String(), what)
	if i < 0 {
		t.Fatalf("no %q in the log:\n%s", what, l)
	}
	return i
}

// fleet is a Supervisor that runs in this process.
type fleet struct {
	*Supervisor
	log   *lines
	addrs []string // of the cells' listeners
	ended chan error
	stop  context.CancelFunc
}

// launchFleet runs n cells that behave like b, and does not wait for anything.
func launchFleet(t *testing.T, n int, b behaviour, change func(*Config)) *fleet {
	t.Helper()
	cpus, err := affinity.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{log: new(lines), ended: make(chan error, 1)}
	cfg := Config{
		Env: b.environ(), Stdout: discard(t), Stderr: os.Stderr,
		Log: slog.New(slog.NewTextHandler(f.log, nil)),
	}
	for i := range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		f.addrs = append(f.addrs, ln.Addr().String())
		cfg.Specs = append(cfg.Specs, Spec{
			Index: i, Placement: affinity.Placement{CPUs: cpus}, Share: 1 / float64(n), Listeners: []net.Listener{ln},
		})
	}
	if change != nil {
		change(&cfg)
	}
	f.Supervisor = New(cfg)
	ctx, stop := context.WithCancel(t.Context())
	f.stop = stop
	go func() {
		f.ended <- f.Run(ctx)
		close(f.ended)
	}()
	t.Cleanup(func() {
		stop()
		f.Stop()
		f.Stop() // those that drain slowly
		select {
		case <-f.ended: //nolint:errcheck // the test looks at it if it is about that
		case <-time.After(patience):
			t.Errorf("the supervisor did not end; its log:\n%s", f.log)
		}
		if t.Failed() {
			t.Logf("log of the supervisor:\n%s", f.log)
		}
	})
	return f
}

// startFleet returns when all cells are ready.
func startFleet(t *testing.T, n int, b behaviour, change func(*Config)) *fleet {
	t.Helper()
	f := launchFleet(t, n, b, change)
	f.await(t, "all cells are ready", func(all []Status) bool {
		for _, c := range all {
			if c.State != Ready {
				return false
			}
		}
		return true
	})
	return f
}

// await waits until the cells are as ok wants them.
func (f *fleet) await(t *testing.T, what string, ok func([]Status) bool) []Status {
	t.Helper()
	all := f.Cells()
	eventually(t, what, func() bool {
		all = f.Cells()
		return ok(all)
	})
	return all
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// result returns what Run did.
func (f *fleet) result(t *testing.T) error {
	t.Helper()
	select {
	case err := <-f.ended:
		return err
	case <-time.After(patience):
		t.Fatal("Run did not return")
		return nil
	}
}

// ask sends a request to the private server of a cell.
func (f *fleet) ask(t *testing.T, cell int, path string, args ...any) (string, error) {
	t.Helper()
	tr := &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return f.Dial(ctx, cell) },
	}
	client := http.Client{Transport: tr, Timeout: 2 * patience}
	return get(&client, "http://cell"+fmt.Sprintf(path, args...))
}

// mustAsk is ask for requests that succeed.
func (f *fleet) mustAsk(t *testing.T, cell int, path string, args ...any) string {
	t.Helper()
	answer, err := f.ask(t, cell, path, args...)
	if err != nil {
		t.Fatalf("cell %d: %s: %v", cell, path, err)
	}
	return answer
}

func (f *fleet) self(t *testing.T, cell int) (s self) {
	t.Helper()
	if err := json.Unmarshal([]byte(f.mustAsk(t, cell, "/self")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func get(client *http.Client, url string) (string, error) {
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read to the end
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return string(body), err
}

// getPublic sends a request to a public address.
func getPublic(addr string) (string, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	return get(&client, "http://"+addr)
}

// alive reports whether a process runs; one that nobody has reaped does not.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}
