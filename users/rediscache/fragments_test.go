package rediscache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pinion/internal/testserver"
	"pinion/users"
)

func TestStoreAndLookup(t *testing.T) {
	c := open(t, Options{URL: shared(t).DSN()})
	const n = 600 // more than one batch
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	json := func(id int64) string {
		if id%3 == 0 {
			return "none"
		}
		return fmt.Sprintf(`{"id":%d,"name":"\u0000 é`+"\x00\r\n"+`"}`, id)
	}
	var entries []users.SharedEntry
	for i, s := range lookup(t, c, ids...) {
		if s.State != users.SharedMiss || s.Lease == 0 || s.JSON != nil {
			t.Fatalf("user %d: got %+v, want a miss with a lease", ids[i], s)
		}
		e := users.SharedEntry{ID: ids[i], Lease: s.Lease}
		if text := json(ids[i]); text != "none" {
			e.JSON = []byte(text)
		}
		entries = append(entries, e)
	}
	store(t, c, entries...)
	for i, s := range lookup(t, c, ids...) {
		if got := state(s); got != json(ids[i]) || s.Lease != 0 {
			t.Fatalf("user %d: got %q and lease %d, want %q", ids[i], got, s.Lease, json(ids[i]))
		}
	}
	// The answer is the caller's: to write to one must not change another.
	first := lookup(t, c, 1)[0].JSON
	clear(first)
	wantState(t, c, 1, json(1))
}

func TestLookupNothing(t *testing.T) {
	c := open(t, Options{URL: shared(t).DSN()})
	lookup(t, c)
	store(t, c)
	store(t, c, users.SharedEntry{ID: 1, JSON: []byte("{}")}) // no lease
	wantState(t, c, 1, "")
}

func TestLeases(t *testing.T) {
	s := shared(t)
	a, b := open(t, Options{URL: s.DSN()}), open(t, Options{URL: s.DSN()})
	mine := lease(t, a, 1)
	if got := lookup(t, b, 1, 1); got[0].Lease != 0 || got[1].Lease != 0 {
		t.Errorf("a second lease was granted: %+v", got)
	}
	store(t, b, users.SharedEntry{ID: 1, Lease: mine + 1, JSON: []byte(`"forged"`)})
	wantState(t, a, 1, "")
	store(t, a, users.SharedEntry{ID: 1, Lease: mine, JSON: []byte(`"one"`)})
	wantState(t, b, 1, `"one"`)
	store(t, a, users.SharedEntry{ID: 1, Lease: mine, JSON: []byte(`"two"`)}) // it is used up
	wantState(t, b, 1, `"one"`)

	// A refill that began before the removal comes too late.
	void(t, b, 1)
	late := lease(t, a, 1)
	void(t, b, 1)
	store(t, a, users.SharedEntry{ID: 1, Lease: late, JSON: []byte(`"old"`)})
	wantState(t, a, 1, "")
	// "Not there" too, and the lease of after the removal still holds.
	void(t, b, 1)
	late = lease(t, a, 1)
	void(t, b, 1)
	after := lease(t, b, 1)
	store(t, a, users.SharedEntry{ID: 1, Lease: late})
	wantState(t, a, 1, "")
	store(t, b, users.SharedEntry{ID: 1, Lease: after})
	wantState(t, a, 1, "none")
}

func TestTTLs(t *testing.T) {
	s := shared(t)
	c := open(t, Options{URL: s.DSN()})
	ttl := func(k string) time.Duration {
		ms, err := strconv.ParseInt(raw(t, s.Addr(), "PTTL", k), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(ms) * time.Millisecond
	}
	const slack = 5 * time.Second // of a loaded machine
	in := func(k string, low, high time.Duration) time.Duration {
		t.Helper()
		d := ttl(k)
		if d < low-slack || d > high {
			t.Errorf("%s lives for %v, want %v to %v", k, d, low, high)
		}
		return d
	}
	different := map[time.Duration]bool{}
	for id := int64(1); id <= 10; id++ {
		l := lease(t, c, id)
		in("user:lease:"+strconv.FormatInt(id, 10), 10*time.Second, 10*time.Second)
		store(t, c, users.SharedEntry{ID: id, Lease: l, JSON: []byte("{}")})
		d := in("user:frag:"+strconv.FormatInt(id, 10), 10*time.Minute, 12*time.Minute)
		different[d.Round(5*time.Second)] = true
	}
	if len(different) < 3 {
		t.Error("the times to live are not spread")
	}
	store(t, c, users.SharedEntry{ID: 11, Lease: lease(t, c, 11)})
	in("user:frag:11", 30*time.Second, 36*time.Second)
	void(t, c, 11)
	in("user:void:11", time.Minute, time.Minute)
	if got := raw(t, s.Addr(), "EXISTS", "user:frag:11", "user:lease:11"); got != "0" {
		t.Errorf("%s keys survived Void", got)
	}
	value, err := strconv.ParseInt(raw(t, s.Addr(), "GET", "user:void:11"), 10, 64)
	if d := time.Since(time.UnixMicro(value)); err != nil || d < 0 || d > 10*time.Second {
		t.Errorf("user:void:11 says %d, %v ago; %v", value, d, err)
	}
}

// TestGarbageValues puts what Store did not write where it would. None of it may come out.
func TestGarbageValues(t *testing.T) {
	s := shared(t)
	c := open(t, Options{URL: s.DSN()})
	good := string(encoded(1, 0, []byte(`{"id":1}`)))
	for name, value := range map[string]string{
		"empty":         "",
		"short":         "\x01",
		"header only":   good[:headerSize],
		"no version":    "{}",
		"older version": "\x01" + good[1:],
		"newer version": "\x03" + good[1:],
		"cut":           good[:len(good)-1],
		"longer":        good + " ",
		"changed":       strings.Replace(good, "id", "iD", 1),
		"of another":    string(encoded(2, 0, []byte(`{"id":2}`))),
		"random":        "\xde\xad\xbe\xef\xde\xad\xbe\xef",
	} {
		raw(t, s.Addr(), "FLUSHALL")
		raw(t, s.Addr(), "SET", "user:frag:1", value)
		found := lookup(t, c, 1)[0]
		if found.State != users.SharedMiss || found.Lease == 0 {
			t.Errorf("%s: got %+v, want a miss with a lease", name, found)
		}
		store(t, c, users.SharedEntry{ID: 1, Lease: found.Lease, JSON: []byte(`{"id":1}`)})
		wantState(t, c, 1, `{"id":1}`)
	}
	raw(t, s.Addr(), "FLUSHALL")
	raw(t, s.Addr(), "LPUSH", "user:frag:1", "x")
	l := lease(t, c, 1)
	store(t, c, users.SharedEntry{ID: 1, Lease: l, JSON: []byte("{}")})
	wantState(t, c, 1, "{}")
	// A lease of the wrong type cannot be told from nobody's: an error, until it is voided.
	raw(t, s.Addr(), "FLUSHALL")
	raw(t, s.Addr(), "LPUSH", "user:lease:1", "x")
	if found := lookup(t, c, 1)[0]; found.State != users.SharedMiss || found.Lease != 0 {
		t.Errorf("got %+v, want a miss without a lease", found)
	}
	err := c.Store(context.Background(), []users.SharedEntry{{ID: 1, Lease: 1, JSON: []byte("{}")}})
	if err == nil || !strings.Contains(err.Error(), "user:frag:1") || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("got %v", err)
	}
	void(t, c, 1)
	lease(t, c, 1)
}

// TestStoreTheOther turns a user into nobody and back.
func TestStoreTheOther(t *testing.T) {
	s := shared(t)
	c := open(t, Options{URL: s.DSN()})
	l := lease(t, c, 1)
	raw(t, s.Addr(), "SET", "user:frag:1", string(encoded(1, 0, nil)))
	wantState(t, c, 1, "none")
	store(t, c, users.SharedEntry{ID: 1, Lease: l, JSON: []byte("{}")})
	wantState(t, c, 1, "{}")
	void(t, c, 1)
	l = lease(t, c, 1)
	raw(t, s.Addr(), "SET", "user:frag:1", string(encoded(1, 0, []byte("{}"))))
	store(t, c, users.SharedEntry{ID: 1, Lease: l})
	wantState(t, c, 1, "none")
}

func encoded(id int64, incarnation uint32, json []byte) []byte {
	return appendValue(nil, id, incarnation, json)
}

// model is what must be true of one id.
type model struct {
	state string // as wantState has it
	lease users.Lease
}

// TestInterleavings runs random calls against the model, which knows of no time: nothing
// here lives long enough to expire.
func TestInterleavings(t *testing.T) {
	s := shared(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	caches := []*Cache{open(t, Options{URL: s.DSN()}), open(t, Options{URL: s.DSN()})}
	const ids, rounds, calls = 3, 1000, 12
	for round := range rounds {
		base := int64(round*ids + 1)
		models := make([]model, ids)
		held := make([][]users.Lease, ids) // all that were granted, used and void ones too
		for call := range calls {
			i := rnd.IntN(ids)
			id, m, c := base+int64(i), &models[i], caches[rnd.IntN(len(caches))]
			switch what := rnd.IntN(7); {
			case what < 3:
				found := lookup(t, c, id)[0]
				if got := state(found); got != m.state {
					t.Fatalf("seed %d, round %d, call %d: user %d is %q, want %q", seed, round, call, id, got, m.state)
				}
				if granted := found.Lease != 0; granted != (m.state == "" && m.lease == 0) {
					t.Fatalf("seed %d, round %d, call %d: user %d: lease granted: %v, model %+v", seed, round, call, id, granted, *m)
				}
				if found.Lease != 0 {
					m.lease = found.Lease
					held[i] = append(held[i], found.Lease)
				}
			case what < 6 && len(held[i]) > 0:
				e := users.SharedEntry{ID: id, Lease: held[i][rnd.IntN(len(held[i]))]}
				state := "none"
				if rnd.IntN(2) == 0 {
					state = fmt.Sprintf(`{"round":%d,"call":%d}`, round, call)
					e.JSON = []byte(state)
				}
				store(t, c, e)
				if e.Lease == m.lease && m.lease != 0 {
					*m = model{state: state}
				}
			case what == 6:
				void(t, c, id)
				*m = model{}
			}
		}
	}
}

// TestNothingOld runs loads and writes at once: each load takes a lease, reads the
// number that a write has left, and stores it. What is stored may never be older than
// what was committed before the last removal.
func TestNothingOld(t *testing.T) {
	s := shared(t)
	const id = 7
	var mu sync.Mutex
	committed := 0
	read := func() int { mu.Lock(); defer mu.Unlock(); return committed }
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		c := open(t, Options{URL: s.DSN()})
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				found, err := c.Lookup(context.Background(), []int64{id})
				if err != nil {
					t.Error(err)
					return
				}
				if l := found[0].Lease; l != 0 {
					json := []byte(strconv.Itoa(read()))
					time.Sleep(rand.N(300 * time.Microsecond))
					if err := c.Store(context.Background(), []users.SharedEntry{{ID: id, Lease: l, JSON: json}}); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	c := open(t, Options{URL: s.DSN()})
	hits := 0
	for i := range 150 {
		mu.Lock()
		committed = i + 1
		mu.Unlock()
		void(t, c, id)
		for range 3 {
			found := lookup(t, c, id)[0]
			if found.State != users.SharedUser {
				void(t, c, id) // this lookup may have taken the lease
				continue
			}
			hits++
			if n, _ := strconv.Atoi(string(found.JSON)); n != i+1 {
				t.Fatalf("stored %d after %d was committed and the rest removed", n, i+1)
			}
		}
	}
	close(stop)
	wg.Wait()
	t.Logf("%d hits", hits)
}

func TestFull(t *testing.T) {
	s := testserver.Redis(t, "--maxmemory-policy", "noeviction")
	c, n := run(t, Options{URL: s.DSN()})
	held := lease(t, c, 1)
	store(t, c, users.SharedEntry{ID: 2, Lease: lease(t, c, 2), JSON: []byte("{}")})
	if err := c.PutAttributes(context.Background(), 3, []users.Attribute{{Key: "k", Value: "v"}}); err != nil {
		t.Fatal(err)
	}
	raw(t, s.Addr(), "CONFIG", "SET", "maxmemory", "1")

	isOOM := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "OOM") || errors.Is(err, ErrDown) {
			t.Errorf("%s: got %v, want an OOM", what, err)
		}
	}
	isOOM("Store", c.Store(context.Background(), []users.SharedEntry{{ID: 1, Lease: held, JSON: []byte("{}")}}))
	isOOM("PutAttributes", c.PutAttributes(context.Background(), 3, []users.Attribute{{Key: "k", Value: "w"}}))
	isOOM("AddAttributes", c.AddAttributes(context.Background(), 6, []users.Attribute{{Key: "k", Value: "w"}}))
	got, err := c.Attributes(context.Background(), []int64{3})
	if err != nil || len(got[3]) != 1 || got[3][0].Value != "v" {
		t.Errorf("the attributes before are gone: %v, %v", got, err)
	}
	wantState(t, c, 2, "{}")
	if found := lookup(t, c, 4)[0]; found.Lease != 0 {
		t.Errorf("got a lease: %+v", found)
	}
	void(t, c, 2)
	eventually(t, "the removal is heard of", func() bool { return n.void(2) > 0 })
	if raw(t, s.Addr(), "EXISTS", "user:frag:2") != "0" {
		t.Error("the fragment survived Void")
	}
	// The script for Redis 6 must do the same.
	c.scripts.void.Store(newScript(voidText))
	void(t, c, 5)
	eventually(t, "the removal is heard of", func() bool { return n.void(5) > 0 })
	if err := c.DropAttributes(context.Background(), 3); err != nil {
		t.Error(err)
	}
}

// TestOldRedis gives Redis a header that it does not know, as Redis 6 does not know ours.
func TestOldRedis(t *testing.T) {
	c, n := run(t, Options{URL: shared(t).DSN()})
	c.scripts.void.Store(newScript("!" + oomHeader + voidText))
	for range 2 {
		void(t, c, 1)
	}
	eventually(t, "the removals are heard of", func() bool { return n.void(1) >= 1 })
	if got := c.scripts.void.Load().text; got != voidText {
		t.Errorf("the script is still %q", got)
	}
}

// TestScriptsForgotten takes the scripts away from Redis.
func TestScriptsForgotten(t *testing.T) {
	s := shared(t)
	c := open(t, Options{URL: s.DSN()})
	for round := range 3 {
		raw(t, s.Addr(), "SCRIPT", "FLUSH")
		ids := []int64{1, 2, 3}
		var entries []users.SharedEntry
		for i, found := range lookup(t, c, ids...) {
			entries = append(entries, users.SharedEntry{ID: ids[i], Lease: found.Lease, JSON: []byte(strconv.Itoa(round))})
		}
		store(t, c, entries...)
		raw(t, s.Addr(), "SCRIPT", "FLUSH")
		for _, id := range ids {
			wantState(t, c, id, strconv.Itoa(round))
			void(t, c, id)
		}
	}
}

func TestErrorsOfContexts(t *testing.T) {
	c := open(t, Options{URL: shared(t).DSN()})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, err := range calls(ctx, c) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	c.Close()
	for name, err := range calls(context.Background(), c) {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s after Close: got %v", name, err)
		}
	}
}

// calls makes each kind of call once, one after another.
func calls(ctx context.Context, c *Cache) map[string]error {
	_, lookup := c.Lookup(ctx, []int64{1})
	_, attributes := c.Attributes(ctx, []int64{1})
	return map[string]error{
		"Lookup": lookup, "Attributes": attributes,
		"Store":          c.Store(ctx, []users.SharedEntry{{ID: 1, Lease: 1, JSON: []byte("{}")}}),
		"Void":           c.Void(ctx, 1),
		"PutAttributes":  c.PutAttributes(ctx, 1, []users.Attribute{{Key: "k"}}),
		"AddAttributes":  c.AddAttributes(ctx, 1, []users.Attribute{{Key: "k"}}),
		"DropAttributes": c.DropAttributes(ctx, 1),
	}
}

func BenchmarkLookup20(b *testing.B) {
	c := open(b, Options{URL: shared(b).DSN()})
	ids := make([]int64, 20)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	for i, s := range lookup(b, c, ids...) {
		store(b, c, users.SharedEntry{ID: ids[i], Lease: s.Lease, JSON: []byte(strings.Repeat("x", 400))})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Lookup(context.Background(), ids); err != nil {
			b.Fatal(err)
		}
	}
}
