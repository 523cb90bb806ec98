package users_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pinion/users"
)

func TestServe(t *testing.T) {
	db := openDB(t)
	if _, err := db.Fill(context.Background(), 10, nil); err != nil {
		t.Fatal(err)
	}
	cfg := newGate(db).config()
	s := newService(t, cfg)
	for round := range 2 {
		fragments := mustLoad(t, s, 3, 99, 1)
		if !strings.HasPrefix(string(fragments[0].JSON()), `{"id":3,`) || !fragments[1].Missing() ||
			fragments[1].JSON() != nil || !strings.HasPrefix(string(fragments[2].JSON()), `{"id":1,`) {
			t.Errorf("round %d: %s, %s, %s", round, fragments[0].JSON(), fragments[1].JSON(), fragments[2].JSON())
		}
	}
	for labels, want := range map[string]float64{"l1,hit": 2, "l1,negative": 1, "l1,miss": 3} {
		if got := counter(cfg.Stats, "cache_requests_total", labels); got != want {
			t.Errorf("cache_requests_total{%s} = %v, want %v", labels, got, want)
		}
	}
	for labels, want := range map[string]float64{"sql,ok": 1, "attributes,ok": 1, "members,ok": 1, "sql,error": 0, "sql,canceled": 0} {
		if got := counter(cfg.Stats, "source_requests_total", labels); got != want {
			t.Errorf("source_requests_total{%s} = %v, want %v", labels, got, want)
		}
	}
	if f := s.CachedUser(0, 1); f == nil || f.Missing() {
		t.Errorf("CachedUser(1) = %v", f)
	}
	if f := s.CachedUser(0, 99); f == nil || !f.Missing() {
		t.Errorf("CachedUser(99) = %v", f)
	}
	if f := s.CachedUser(0, 5); f != nil {
		t.Errorf("CachedUser(5) = %v", f)
	}
	if err := s.Ping(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestRowsAlone(t *testing.T) {
	db := openDB(t)
	if _, err := db.Fill(context.Background(), 20, nil); err != nil {
		t.Fatal(err)
	}
	s := newService(t, users.Config{Rows: db})
	for id := int64(1); id <= 20; id++ {
		f := mustLoad(t, s, id)[0]
		if f.Degraded() != 0 || !strings.HasSuffix(string(f.JSON()), `"attributes":{},"member":null}`) {
			t.Errorf("got %s, degraded %d", f.JSON(), f.Degraded())
		}
	}
}

// How long L1 remembers, on a clock that costs no time.
func TestTTL(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name     string
		id       int64
		degraded bool
		min, max time.Duration
	}{
		{"user", 1, false, 60 * time.Second, 72 * time.Second},
		{"missing", 99, false, 30 * time.Second, 36 * time.Second},
		{"degraded", 1, true, 500 * time.Millisecond, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := openDB(t)
				sample(t, db, 1)
				g := newGate(db)
				if tt.degraded {
					g.onMembers = func(context.Context, func() (map[int64]users.Member, error)) (map[int64]users.Member, error) {
						return nil, broken
					}
				}
				s := newService(t, g.config())
				mustLoad(t, s, tt.id)
				start := time.Now()
				for s.CachedUser(0, tt.id) != nil { // reading does not prolong it
					time.Sleep(10 * time.Millisecond)
				}
				const lag = 100 * time.Millisecond
				if d := time.Since(start); d < tt.min-lag || d > tt.max+lag || tt.degraded && d > tt.max {
					t.Errorf("kept for %v, want %v to %v", d, tt.min, tt.max)
				}
			})
		})
	}
}

func TestWrites(t *testing.T) {
	ctx := context.Background()
	db := openDB(t)
	s := newService(t, newGate(db).config())
	f, id, err := s.Create(ctx, users.NewUser{Name: "Zoë", Email: "z@example.com", Address: "here", Attributes: []users.Attribute{{Key: "z"}, {Key: "a"}}})
	if err != nil || !hasName(f, "Zoë") || !strings.Contains(string(f.JSON()), `"attributes":{"a":"","z":""}`) {
		t.Fatalf("Create = %v, %d, %v", f, id, err)
	}
	if address, err := s.Address(ctx, id); err != nil || address != "here" {
		t.Errorf("Address = %q, %v", address, err)
	}
	same, err := s.Update(ctx, id, users.Patch{})
	if err != nil || string(same.JSON()) != string(f.JSON()) {
		t.Errorf("the empty patch answered %v, %v", same, err)
	}
	name := "Ada"
	f, err = s.Update(ctx, id, users.Patch{Name: &name})
	if err != nil || !hasName(f, "Ada") || !hasName(s.CachedUser(0, id), "Ada") {
		t.Errorf("Update = %v, %v", f, err)
	}
	if err := s.Delete(ctx, id); err != nil {
		t.Error(err)
	}
	_, addressErr := s.Address(ctx, id)
	_, updateErr := s.Update(ctx, id, users.Patch{Name: &name})
	_, emptyErr := s.Update(ctx, id, users.Patch{})
	for what, err := range map[string]error{
		"Address": addressErr, "Update": updateErr, "empty Update": emptyErr, "Delete": s.Delete(ctx, id),
	} {
		if !errors.Is(err, users.ErrNotFound) || errors.Is(err, users.ErrUnavailable) {
			t.Errorf("%s after Delete = %v, want ErrNotFound", what, err)
		}
	}
	var field *users.FieldError
	if _, _, err := s.Create(ctx, users.NewUser{Name: "x"}); !errors.As(err, &field) || field.Field != "email" {
		t.Errorf("Create without email = %v", err)
	}
	empty := ""
	if _, err := s.Update(ctx, id, users.Patch{Name: &empty}); !errors.As(err, &field) || field.Field != "name" {
		t.Errorf("Update to no name = %v", err)
	}
}

// The write is done, the read after it fails: the caller learns both.
func TestReadBackFails(t *testing.T) {
	db := openDB(t)
	g := newGate(db)
	s := newService(t, g.config())
	g.onUsers = func(context.Context, []int64, func() ([]users.User, error)) ([]users.User, error) {
		return nil, errors.New("broken")
	}
	_, id, err := s.Create(context.Background(), users.NewUser{Name: "x", Email: "x@example.com"})
	wantUnavailable(t, err)
	if id != 1 {
		t.Errorf("id %d, want 1: the user is stored", id)
	}
}

// A caller that leaves between the commit and the read still hears of its write.
func TestCallerLeavesAfterCommit(t *testing.T) {
	db := openDB(t)
	g := newGate(db)
	s := newService(t, g.config())
	ctx, cancel := context.WithCancel(context.Background())
	g.onWrite = func(_ context.Context, next func() error) error {
		defer cancel()
		return next()
	}
	f, id, err := s.Create(ctx, users.NewUser{Name: "x", Email: "x@example.com"})
	if err != nil || id != 1 || !hasName(f, "x") {
		t.Errorf("Create = %v, %d, %v", f, id, err)
	}
}

func TestCallerHasLeft(t *testing.T) {
	db := openDB(t)
	sample(t, db, 1)
	cfg := newGate(db).config()
	s := newService(t, cfg)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	name := "new"
	_, loadErr := loadIn(ctx, s, 1)
	_, addressErr := s.Address(ctx, 1)
	_, _, createErr := s.Create(ctx, users.NewUser{Name: "x", Email: "x@example.com"})
	_, updateErr := s.Update(ctx, 1, users.Patch{Name: &name})
	for what, err := range map[string]error{
		"Load": loadErr, "Address": addressErr, "Create": createErr, "Update": updateErr,
		"Delete": s.Delete(ctx, 1), "Active": s.Active(ctx, users.ActiveQuery{Limit: 1}, &users.Batch{}), "Ping": s.Ping(ctx),
	} {
		if !errors.Is(err, context.Canceled) || errors.Is(err, users.ErrUnavailable) {
			t.Errorf("%s = %v, want context.Canceled", what, err)
		}
	}
	if n := counter(cfg.Stats, "source_requests_total", "sql,error"); n != 0 {
		t.Errorf("%v failures counted: a caller that left is none", n)
	}
	if f := mustLoad(t, s, 1); !hasName(f[0], "user 1") {
		t.Errorf("got %s", f[0].JSON())
	}
}

func TestActive(t *testing.T) {
	ctx := context.Background()
	db := openDB(t)
	sample(t, db, 4)
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for id := int64(1); id <= 3; id++ {
		at := base.Add(time.Duration(id) * time.Hour)
		if err := db.Update(ctx, id, users.Patch{LastLoginAt: &at}); err != nil {
			t.Fatal(err)
		}
	}
	g := newGate(db)
	s := newService(t, g.config())
	var b users.Batch
	for _, tt := range []struct {
		query users.ActiveQuery
		want  string
	}{
		{users.ActiveQuery{Limit: 10}, "[3 2 1]"},
		{users.ActiveQuery{Limit: 2, Cities: []int64{1, 2}}, "[3 2]"},
		{users.ActiveQuery{Limit: 10, Cities: []int64{2}}, "[]"},
		{users.ActiveQuery{Limit: 10, Since: base.Add(2 * time.Hour)}, "[3 2]"},
	} {
		if err := s.Active(ctx, tt.query, &b); err != nil || fmt.Sprint(b.IDs) != tt.want || len(b.Fragments) != len(b.IDs) {
			t.Errorf("%+v: %v, %v; want %s", tt.query, b.IDs, err, tt.want)
		}
		for i, f := range b.Fragments {
			if !hasName(f, fmt.Sprint("user ", b.IDs[i])) {
				t.Errorf("id %d: %s", b.IDs[i], f.JSON())
			}
		}
		b.Reset()
	}
	if got := g.log(); got != "[3 2 1]" {
		t.Errorf("queries %s, want [3 2 1]", got)
	}

	// User 2 goes between the query and the load.
	fresh := newGate(db)
	fresh.onUsers = func(_ context.Context, _ []int64, next func() ([]users.User, error)) ([]users.User, error) {
		if err := db.Delete(ctx, 2); err != nil {
			t.Error(err)
		}
		return next()
	}
	s = newService(t, fresh.config())
	if err := s.Active(ctx, users.ActiveQuery{Limit: 10}, &b); err != nil || fmt.Sprint(b.IDs) != "[3 1]" || len(b.Fragments) != 2 {
		t.Errorf("%v, %v; want [3 1]", b.IDs, err)
	}
}
