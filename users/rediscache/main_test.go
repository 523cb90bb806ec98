package rediscache

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"pinion/internal/testserver"
	"pinion/users"
)

var servers testserver.Shared

func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Main{M: m, Servers: &servers}) }

// shared returns the server that most tests use, emptied. It ends with the last of them.
func shared(t testing.TB) *testserver.Server {
	t.Helper()
	s := servers.Redis(t)
	raw(t, s.Addr(), "FLUSHALL")
	return s
}

// raw sends one command on a connection of its own, past the code under test, and
// returns the reply as text: "" for nil. It ends the test if there is none.
func raw(t testing.TB, addr string, args ...string) string {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true, DisableRetry: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	m, err := c.Do(ctx, c.B().Arbitrary(args[0]).Args(args[1:]...).Build()).ToMessage()
	if rueidis.IsRedisNil(err) {
		return ""
	}
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	if list, err := m.ToArray(); err == nil {
		var all []string
		for _, e := range list {
			all = append(all, e.String())
		}
		return strings.Join(all, " ")
	}
	if n, err := m.AsInt64(); err == nil {
		return fmt.Sprint(n)
	}
	text, err := m.ToString()
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return text
}

// open returns a Cache that is not run.
func open(t testing.TB, opts Options) *Cache {
	t.Helper()
	if opts.Timeout == 0 {
		opts.Timeout = 10 * time.Second // nothing here depends on being fast
	}
	c, err := Open(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// news collects what a Cache says.
type news struct {
	mu      sync.Mutex
	voids   map[int64]int
	flushes int
	history []bool // of OnTracking
}

func (n *news) attach(opts *Options) {
	n.voids = make(map[int64]int)
	opts.OnVoid = func(id int64) { n.mu.Lock(); defer n.mu.Unlock(); n.voids[id]++ }
	opts.OnFlush = func() { n.mu.Lock(); defer n.mu.Unlock(); n.flushes++ }
	opts.OnTracking = func(up bool) { n.mu.Lock(); defer n.mu.Unlock(); n.history = append(n.history, up) }
}

func (n *news) void(id int64) int { n.mu.Lock(); defer n.mu.Unlock(); return n.voids[id] }
func (n *news) flushed() int      { n.mu.Lock(); defer n.mu.Unlock(); return n.flushes }

func (n *news) tracking() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.history) > 0 && n.history[len(n.history)-1]
}

// states returns what OnTracking said, as in "-+-".
func (n *news) states() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var b strings.Builder
	for _, up := range n.history {
		b.WriteByte("-+"[map[bool]int{true: 1}[up]])
	}
	return b.String()
}

// run opens a Cache that tracks, and waits until it does.
func run(t testing.TB, opts Options) (*Cache, *news) {
	t.Helper()
	n := new(news)
	n.attach(&opts)
	c := open(t, opts)
	var wg sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	wg.Go(func() { c.Run(ctx) })
	t.Cleanup(func() { stop(); wg.Wait() })
	eventually(t, "tracking is on", n.tracking)
	return c, n
}

// eventually waits until what holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	within(t, 10*time.Second, what, holds)
}

func within(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

func lookup(t testing.TB, c *Cache, ids ...int64) []users.Shared {
	t.Helper()
	found, err := c.Lookup(context.Background(), ids)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != len(ids) {
		t.Fatalf("%d answers for %d ids", len(found), len(ids))
	}
	return found
}

// lease looks id up, and wants a miss with a lease.
func lease(t testing.TB, c *Cache, id int64) users.Lease {
	t.Helper()
	found := lookup(t, c, id)[0]
	if found.State != users.SharedMiss || found.Lease == 0 {
		t.Fatalf("user %d: got %+v, want a lease", id, found)
	}
	return found.Lease
}

func store(t testing.TB, c *Cache, entries ...users.SharedEntry) {
	t.Helper()
	if err := c.Store(context.Background(), entries); err != nil {
		t.Fatal(err)
	}
}

func void(t testing.TB, c *Cache, id int64) {
	t.Helper()
	if err := c.Void(context.Background(), id); err != nil {
		t.Fatal(err)
	}
}

// wantState checks what is stored for id: "" for a miss, "none" for no such user, else
// the JSON.
func wantState(t testing.TB, c *Cache, id int64, want string) {
	t.Helper()
	if got := state(lookup(t, c, id)[0]); got != want {
		t.Errorf("user %d: got %q, want %q", id, got, want)
	}
}

func state(s users.Shared) string {
	switch s.State {
	case users.SharedUser:
		return string(s.JSON)
	case users.SharedMissing:
		return "none"
	default:
		return ""
	}
}
