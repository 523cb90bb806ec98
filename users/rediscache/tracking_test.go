package rediscache

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pinion/internal/stats"
	"pinion/internal/testserver"
	"pinion/users"
)

func TestTracking(t *testing.T) {
	s := shared(t)
	reg := stats.NewRegistry(1)
	a, heardA := run(t, Options{URL: s.DSN()})
	_, heardB := run(t, Options{URL: s.DSN(), Stats: reg})
	store(t, a, users.SharedEntry{ID: 1, Lease: lease(t, a, 1), JSON: []byte("{}")})
	var took []time.Duration
	const voids = 200
	for id := int64(1); id <= voids; id++ {
		began := time.Now()
		void(t, a, id)
		eventually(t, "the other hears of the removal", func() bool { return heardB.void(id) == 1 })
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("void to removal elsewhere: median %v, 99 %% %v, most %v", took[voids/2], took[voids*99/100], took[voids-1])
	eventually(t, "the one that removed hears it too", func() bool { return heardA.void(voids) == 1 })
	void(t, a, 1) // again: the same id is news each time
	eventually(t, "the second removal is heard of", func() bool { return heardB.void(1) == 2 })
	if heardB.flushed() != 0 || heardB.states() != "-+" {
		t.Errorf("%d flushes, tracking %s", heardB.flushed(), heardB.states())
	}
	if err := reg.Err(); err != nil {
		t.Error(err)
	}
	eventually(t, "the staleness is measured", func() bool {
		for _, f := range reg.Snapshot() {
			if f.Name == "l1_staleness_seconds" && f.Series[0].Count > 0 {
				return f.Series[0].Sum > 0 && f.Series[0].Sum < 10*float64(f.Series[0].Count)
			}
		}
		return false
	})
}

// TestFillsAreQuiet stores and reads: only removals may be heard of.
func TestFillsAreQuiet(t *testing.T) {
	s := shared(t)
	c, n := run(t, Options{URL: s.DSN()})
	store(t, c, users.SharedEntry{ID: 1, Lease: lease(t, c, 1), JSON: []byte("{}")})
	store(t, c, users.SharedEntry{ID: 2, Lease: lease(t, c, 2)})
	put(t, c, 1, users.Attribute{Key: "k"})
	void(t, c, 3)
	eventually(t, "the removal is heard of", func() bool { return n.void(3) == 1 })
	if n.void(1) != 0 || n.void(2) != 0 {
		t.Errorf("fills were pushed: %v", n.voids)
	}
}

// TestForeignKeys writes what Void would not under its prefix.
func TestForeignKeys(t *testing.T) {
	s := shared(t)
	_, n := run(t, Options{URL: s.DSN()})
	for _, k := range []string{"", "x", "-1", "01", "1x", "99999999999999999999", "\xff"} {
		raw(t, s.Addr(), "SET", "user:void:"+k, "1")
	}
	raw(t, s.Addr(), "LPUSH", "user:void:5", "x") // of the wrong type, but a change
	raw(t, s.Addr(), "SET", "user:void:6", "soon")
	eventually(t, "the last is heard of", func() bool { return n.void(6) == 1 && n.void(5) == 1 })
	if len(n.voids) != 2 || n.states() != "-+" {
		t.Errorf("heard %v, tracking %s", n.voids, n.states())
	}
}

func TestFlushes(t *testing.T) {
	s := shared(t)
	c, n := run(t, Options{URL: s.DSN()})
	for i, command := range []string{"FLUSHALL", "FLUSHDB"} {
		store(t, c, users.SharedEntry{ID: 1, Lease: lease(t, c, 1), JSON: []byte("{}")})
		raw(t, s.Addr(), command)
		eventually(t, command+" is heard of", func() bool { return n.flushed() == i+1 })
		wantState(t, c, 1, "")
		void(t, c, 1)
	}
	if n.states() != "-+" {
		t.Errorf("tracking %s, want -+", n.states())
	}
}

// TestTrackingKilled cuts the connection for tracking only. Everything else goes on.
func TestTrackingKilled(t *testing.T) {
	s := shared(t)
	c, n := run(t, Options{URL: s.DSN()})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := c.Attributes(context.Background(), []int64{1}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	want := "-+"
	for range 3 {
		for line := range strings.Lines(raw(t, s.Addr(), "CLIENT", "LIST")) {
			fields := strings.Fields(line)
			if slices.ContainsFunc(fields, func(f string) bool {
				return strings.HasPrefix(f, "flags=") && strings.Contains(f, "t")
			}) {
				raw(t, s.Addr(), "CLIENT", "KILL", "ID", strings.TrimPrefix(fields[0], "id="))
			}
		}
		want += "-+"
		eventually(t, "tracking is on again", func() bool { return n.states() == want })
		id := int64(len(want))
		void(t, c, id)
		eventually(t, "the removal is heard of", func() bool { return n.void(id) == 1 })
	}
	close(stop)
	wg.Wait()
}

// TestRunEnds ends Run both ways. Its last word is that tracking is off.
func TestRunEnds(t *testing.T) {
	s := shared(t)
	for name, end := range map[string]func(c *Cache, cancel func()){
		"context": func(_ *Cache, cancel func()) { cancel() },
		"Close":   func(c *Cache, _ func()) { c.Close(); c.Close() },
	} {
		n := new(news)
		opts := Options{URL: s.DSN()}
		n.attach(&opts)
		c := open(t, opts)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); c.Run(ctx) }()
		eventually(t, "tracking is on", n.tracking)
		end(c, cancel)
		<-done
		cancel()
		if n.states() != "-+-" {
			t.Errorf("%s: tracking %s, want -+-", name, n.states())
		}
		c.Close()
		c.Run(context.Background()) // returns
	}
}

func TestPassword(t *testing.T) {
	s := testserver.Redis(t, "--requirepass", "hunter2")
	admin := open(t, Options{URL: "redis://:hunter2@" + s.Addr()})
	results, err := admin.do(context.Background(), admin.client.B().Arbitrary("ACL", "SETUSER", "pinion", "on", ">secret/#", "~user:*", "+@all").Build())
	if err != nil || results[0].Error() != nil {
		t.Fatal(err, results)
	}
	for _, user := range []string{":hunter2", "default:hunter2", "pinion:secret%2F%23"} {
		c, n := run(t, Options{URL: "redis://" + user + "@" + s.Addr()})
		void(t, c, 1)
		eventually(t, "the removal is heard of", func() bool { return n.void(1) == 1 })
	}
	for _, user := range []string{"", ":hunter3@", "pinion:hunter2@", "nobody:hunter2@"} {
		_, err := Open(context.Background(), Options{URL: "redis://" + user + s.Addr(), DialTimeout: 10 * time.Second})
		wantRefused(t, err)
	}
	_, err = Open(context.Background(), Options{URL: "redis://:hunter2@" + s.Addr() + "/9999", DialTimeout: 10 * time.Second})
	wantRefused(t, err)
}

func wantRefused(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), ErrRefused.Error()) || strings.Contains(err.Error(), "hunter") {
		t.Errorf("got %v", err)
	}
}

func TestDatabase(t *testing.T) {
	s := shared(t)
	c, n := run(t, Options{URL: "redis://" + s.Addr() + "/3"})
	put(t, c, 1, users.Attribute{Key: "k"})
	void(t, c, 1)
	eventually(t, "the removal is heard of", func() bool { return n.void(1) == 1 })
	if got := raw(t, s.Addr(), "DBSIZE"); got != "0" {
		t.Errorf("database 0 has %s keys", got)
	}
	other := open(t, Options{URL: s.DSN()})
	if len(attributes(t, other, 1)) != 0 {
		t.Error("database 0 has the attributes of database 3")
	}
}

func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "pinion-unix-") // t.TempDir is closed to others, as whom Redis may run
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover does no harm
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "redis.sock")
	testserver.Redis(t, "--unixsocket", path, "--unixsocketperm", "777")
	c, n := run(t, Options{URL: fmt.Sprintf("unix://%s?db=1", path)})
	void(t, c, 1)
	eventually(t, "the removal is heard of", func() bool { return n.void(1) == 1 })
}
