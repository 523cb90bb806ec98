package rediscache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pinion/internal/testserver"
	"pinion/users"
	"pinion/users/sqldb"
)

func attributes(t testing.TB, c *Cache, ids ...int64) map[int64][]users.Attribute {
	t.Helper()
	all, err := c.Attributes(context.Background(), ids)
	if err != nil {
		t.Fatal(err)
	}
	for _, attrs := range all {
		slices.SortFunc(attrs, func(a, b users.Attribute) int { return cmp.Compare(a.Key, b.Key) })
	}
	return all
}

func put(t testing.TB, c *Cache, id int64, attrs ...users.Attribute) {
	t.Helper()
	if err := c.PutAttributes(context.Background(), id, attrs); err != nil {
		t.Fatal(err)
	}
}

func TestAttributes(t *testing.T) {
	s := shared(t)
	c := open(t, Options{URL: s.DSN()})
	put(t, c, 1, users.Attribute{Key: "a", Value: "1"}, users.Attribute{Key: "ключ\x00\r\n", Value: "\xff"})
	put(t, c, 2, users.Attribute{Key: "", Value: ""})
	raw(t, s.Addr(), "HSET", "user:attr:3", "foreign", "yes")
	got := attributes(t, c, 1, 2, 3, 4)
	want := "map[1:[{a 1} {ключ\x00\r\n \xff}] 2:[{ }] 3:[{foreign yes}]]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %q, want %q", fmt.Sprint(got), want)
	}
	put(t, c, 1, users.Attribute{Key: "b", Value: "2"}) // replaces all
	put(t, c, 2)
	if err := c.DropAttributes(context.Background(), 3); err != nil {
		t.Fatal(err)
	}
	if err := c.DropAttributes(context.Background(), 3); err != nil {
		t.Errorf("what is gone cannot be dropped: %v", err)
	}
	if got := fmt.Sprint(attributes(t, c, 1, 2, 3, 4)); got != "map[1:[{b 2}]]" {
		t.Errorf("got %q", got)
	}
	if len(attributes(t, c)) != 0 {
		t.Error("attributes of nobody")
	}
}

func TestManyAttributes(t *testing.T) {
	c := open(t, Options{URL: shared(t).DSN()})
	var ids []int64
	for id := int64(1); id <= 600; id++ {
		ids = append(ids, id)
		put(t, c, id, users.Attribute{Key: "id", Value: fmt.Sprint(id)})
	}
	var many []users.Attribute
	for i := range maxFields {
		many = append(many, users.Attribute{Key: fmt.Sprint(i), Value: strings.Repeat("x", 20)})
	}
	put(t, c, 1000, many...)
	all := attributes(t, c, append(ids, 1000)...)
	for _, id := range ids {
		if len(all[id]) != 1 || all[id][0].Value != fmt.Sprint(id) {
			t.Fatalf("user %d has %v", id, all[id])
		}
	}
	if len(all[1000]) != len(many) {
		t.Errorf("%d attributes, want %d", len(all[1000]), len(many))
	}
}

// TestUnusableAttributes: what a key holds wrongly is a failure of that user alone.
func TestUnusableAttributes(t *testing.T) {
	s := shared(t)
	c := open(t, Options{URL: s.DSN()})
	put(t, c, 1, users.Attribute{Key: "a", Value: "1"})
	put(t, c, 9, users.Attribute{Key: "a", Value: strings.Repeat("x", maxHashBytes-1)})
	var many []users.Attribute
	for i := range maxFields + 1 {
		many = append(many, users.Attribute{Key: fmt.Sprint(i)})
	}
	for name, spoil := range map[string]func(){
		"WRONGTYPE":       func() { raw(t, s.Addr(), "SET", "user:attr:2", "text") },
		"1000 attributes": func() { put(t, c, 2, many...) },
		"262144 bytes":    func() { put(t, c, 2, users.Attribute{Key: "a", Value: strings.Repeat("x", maxHashBytes)}) },
	} {
		spoil()
		all, err := c.Attributes(context.Background(), []int64{1, 2, 3, 9})
		var part *users.PartError
		if !errors.As(err, &part) || fmt.Sprint(part.IDs) != "[2]" || !strings.Contains(err.Error(), "user 2") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
		if len(all) != 2 || fmt.Sprint(all[1]) != "[{a 1}]" || len(all[9]) != 1 {
			t.Errorf("%s: got the attributes of %d users, and %v", name, len(all), all[1])
		}
		put(t, c, 2, users.Attribute{Key: "b", Value: "2"}) // a write puts it right
		if got := fmt.Sprint(attributes(t, c, 1, 2)); got != "map[1:[{a 1}] 2:[{b 2}]]" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestRefusedAttributes: a Redis that refuses to read has failed for every user.
func TestRefusedAttributes(t *testing.T) {
	s := testserver.Redis(t)
	raw(t, s.Addr(), "ACL", "SETUSER", "default", "-hgetall")
	c := open(t, Options{URL: s.DSN()})
	all, err := c.Attributes(context.Background(), []int64{1, 2})
	var part *users.PartError
	if all != nil || errors.As(err, &part) || err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("got %v, %v", all, err)
	}
}

// TestUnusableAttributesOfService: one bad key costs its user the attributes, and nobody
// anything else, however often it is read.
func TestUnusableAttributesOfService(t *testing.T) {
	ctx := context.Background()
	server := shared(t)
	c := open(t, Options{URL: server.DSN()})
	db, err := sqldb.Open(ctx, sqldb.Options{DSN: "sqlite::memory:"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	s := users.NewService(users.Config{Rows: db, Attributes: c, AttributeWriter: c})
	defer s.Close()
	attrs := []users.Attribute{{Key: "k", Value: "v"}}
	var ids []int64
	for range 61 {
		_, id, err := s.Create(ctx, users.NewUser{Name: "x", Email: "x@example.com", Attributes: attrs})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	const bad = 7
	raw(t, server.Addr(), "SET", "user:attr:7", "text")
	read := func(ids ...int64) {
		t.Helper()
		for _, id := range ids {
			s.Forget(id)
		}
		b := users.Batch{IDs: ids}
		if err := s.Load(ctx, &b); err != nil {
			t.Fatal(err)
		}
		for i, f := range b.Fragments {
			lacks, want := users.Degraded(0), `"attributes":{"k":"v"}`
			if ids[i] == bad {
				lacks, want = users.DegradedAttributes, `"attributes":null`
			}
			if f.Degraded() != lacks || !strings.Contains(string(f.JSON()), want) {
				t.Fatalf("user %d: got %s, degraded %d", ids[i], f.JSON(), f.Degraded())
			}
		}
	}
	for range 30 { // more than it takes to open a breaker
		read(bad)
	}
	read(ids...)
	if _, err := s.Update(ctx, 8, users.Patch{Attributes: &attrs}); err != nil {
		t.Error(err)
	}
	if err := s.Delete(ctx, 9); err != nil {
		t.Error(err)
	}
	if f, err := s.Update(ctx, bad, users.Patch{Attributes: &attrs}); err != nil || f.Degraded() != 0 {
		t.Errorf("the bad one is not put right: %v", err)
	}
}

func TestAddAttributes(t *testing.T) {
	ctx := context.Background()
	s := shared(t)
	raw(t, s.Addr(), "SCRIPT", "FLUSH")
	c := open(t, Options{URL: s.DSN()})
	var many []users.Attribute
	for i := range 20_000 {
		many = append(many, users.Attribute{Key: fmt.Sprint(i), Value: "\x00"})
	}
	put(t, c, 2, users.Attribute{Key: "mine", Value: "old"})
	for id, attrs := range map[int64][]users.Attribute{
		1: {{Key: "a", Value: "1"}, {Key: "", Value: ""}}, 2: {{Key: "mine", Value: "new"}, {Key: "more", Value: "x"}}, 3: nil, 4: many,
	} {
		if err := c.AddAttributes(ctx, id, attrs); err != nil {
			t.Errorf("user %d: %v", id, err)
		}
	}
	if got := fmt.Sprint(attributes(t, c, 1, 2, 3)); got != "map[1:[{ } {a 1}] 2:[{mine old}]]" {
		t.Errorf("got %q", got)
	}
	if got := raw(t, s.Addr(), "HLEN", "user:attr:4"); got != "20000" {
		t.Errorf("%s attributes, want 20000", got)
	}
	raw(t, s.Addr(), "SET", "user:attr:5", "text")
	if err := c.AddAttributes(ctx, 5, many[:1]); err == nil || !strings.Contains(err.Error(), "user 5") || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("over a key of another type: %v", err)
	}
	if got := raw(t, s.Addr(), "GET", "user:attr:5"); got != "text" {
		t.Errorf("a key of another type became %q", got)
	}
}

// TestAddAttributesOnce: of writers that come together one stores, and as a whole.
func TestAddAttributesOnce(t *testing.T) {
	s := shared(t)
	c := open(t, Options{URL: s.DSN()})
	for round := range int64(20) {
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				if err := c.AddAttributes(context.Background(), round, []users.Attribute{{Key: "a", Value: fmt.Sprint(w)}, {Key: fmt.Sprint(w), Value: ""}}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		got := attributes(t, c, round)[round]
		if len(got) != 2 || got[0].Key != got[1].Value {
			t.Fatalf("a mixture: %v", got)
		}
	}
}

// TestPutIsAtomic reads while two writers replace the same hash, by commands that are
// longer than what Redis reads at a time.
func TestPutIsAtomic(t *testing.T) {
	s := shared(t)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for w := range 2 {
		c := open(t, Options{URL: s.DSN()})
		var attrs []users.Attribute
		for i := range 900 + w {
			attrs = append(attrs, users.Attribute{Key: fmt.Sprint("k", w, "-", i), Value: fmt.Sprint(w) + strings.Repeat(" ", 100)})
		}
		put(t, c, 1, attrs...)
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := c.PutAttributes(context.Background(), 1, attrs); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	c := open(t, Options{URL: s.DSN()})
	for range 50 {
		attrs := attributes(t, c, 1)[1]
		if len(attrs) == 0 || len(attrs) != map[byte]int{'0': 900, '1': 901}[attrs[0].Value[0]] {
			t.Fatalf("a mixture of %d", len(attrs))
		}
	}
	close(stop)
	wg.Wait()
}
