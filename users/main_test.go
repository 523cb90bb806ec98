package users_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"pinion/internal/stats"
	"pinion/users"
	"pinion/users/sqldb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openDB(t testing.TB) *sqldb.DB { return openDSN(t, "sqlite::memory:") }

func openDSN(t testing.TB, dsn string) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(context.Background(), sqldb.Options{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// gate stands before a real database. A hook sees a call, and may hold it up, fail it or
// pass it on by next. A nil hook passes all.
type gate struct {
	users.Rows
	attributes users.AttributeSource
	members    users.MemberSource

	onUsers      func(ctx context.Context, ids []int64, next func() ([]users.User, error)) ([]users.User, error)
	onAttributes func(ctx context.Context, next func() (map[int64][]users.Attribute, error)) (map[int64][]users.Attribute, error)
	onMembers    func(ctx context.Context, next func() (map[int64]users.Member, error)) (map[int64]users.Member, error)
	onWrite      func(ctx context.Context, next func() error) error

	mu    sync.Mutex
	asked [][]int64 // ids of each Users call
	calls map[string]int
}

func newGate(db *sqldb.DB) *gate {
	return &gate{Rows: db, attributes: db, members: db, calls: make(map[string]int)}
}

func (g *gate) count(call string, ids []int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls[call]++
	if call == "users" {
		g.asked = append(g.asked, append([]int64(nil), ids...))
	}
}

// called returns how often a source was asked.
func (g *gate) called(call string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls[call]
}

// log returns what Users was asked, as in "[1 2] [3]".
func (g *gate) log() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var parts []string
	for _, ids := range g.asked {
		parts = append(parts, fmt.Sprint(ids))
	}
	return strings.Join(parts, " ")
}

func (g *gate) Users(ctx context.Context, ids []int64) ([]users.User, error) {
	g.count("users", ids)
	next := func() ([]users.User, error) { return g.Rows.Users(context.WithoutCancel(ctx), ids) }
	if g.onUsers == nil {
		return g.Rows.Users(ctx, ids)
	}
	return g.onUsers(ctx, ids, next)
}

func (g *gate) Attributes(ctx context.Context, ids []int64) (map[int64][]users.Attribute, error) {
	g.count("attributes", ids)
	next := func() (map[int64][]users.Attribute, error) { return g.attributes.Attributes(ctx, ids) }
	if g.onAttributes == nil {
		return next()
	}
	return g.onAttributes(ctx, next)
}

func (g *gate) Members(ctx context.Context, ids []int64) (map[int64]users.Member, error) {
	g.count("members", ids)
	next := func() (map[int64]users.Member, error) { return g.members.Members(ctx, ids) }
	if g.onMembers == nil {
		return next()
	}
	return g.onMembers(ctx, next)
}

func (g *gate) write(ctx context.Context, next func() error) error {
	if g.onWrite == nil {
		return next()
	}
	return g.onWrite(ctx, next)
}

func (g *gate) Create(ctx context.Context, u users.NewUser) (id int64, err error) {
	err = g.write(ctx, func() error {
		id, err = g.Rows.Create(ctx, u)
		return err
	})
	return id, err
}

func (g *gate) Update(ctx context.Context, id int64, p users.Patch) error {
	return g.write(ctx, func() error { return g.Rows.Update(ctx, id, p) })
}

func (g *gate) Delete(ctx context.Context, id int64) error {
	return g.write(ctx, func() error { return g.Rows.Delete(ctx, id) })
}

// config joins everything from the gate.
func (g *gate) config() users.Config {
	return users.Config{Rows: g, Attributes: g, Members: g, Stats: stats.NewRegistry(1)}
}

func newService(t testing.TB, cfg users.Config) *users.Service {
	t.Helper()
	s := users.NewService(cfg)
	t.Cleanup(s.Close)
	return s
}

// sample creates n users with an attribute each; their ids are 1 to n.
func sample(t testing.TB, db *sqldb.DB, n int) {
	t.Helper()
	for i := 1; i <= n; i++ {
		id, err := db.Create(context.Background(), users.NewUser{
			Name: fmt.Sprint("user ", i), Email: "x@example.com", Status: users.StatusActive, CityID: 1,
			Attributes: []users.Attribute{{Key: "k", Value: "v"}},
		})
		if err != nil || id != int64(i) {
			t.Fatal(id, err)
		}
	}
}

func load(s *users.Service, ids ...int64) ([]*users.Fragment, error) {
	return loadIn(context.Background(), s, ids...)
}

// loadIn does what a request does.
func loadIn(ctx context.Context, s *users.Service, ids ...int64) ([]*users.Fragment, error) {
	b := users.Batch{IDs: ids}
	if s.Cached(&b) {
		return b.Fragments, nil
	}
	err := s.Load(ctx, &b)
	return b.Fragments, err
}

// mustLoad may run on any goroutine: it reports an error, and answers "not there".
func mustLoad(t testing.TB, s *users.Service, ids ...int64) []*users.Fragment {
	t.Helper()
	fragments, err := load(s, ids...)
	if err != nil {
		t.Error(err)
		fragments = make([]*users.Fragment, len(ids))
		for i := range fragments {
			fragments[i] = new(users.Fragment)
		}
	}
	return fragments
}

func rename(t testing.TB, s *users.Service, id int64, name string) {
	t.Helper()
	if _, err := s.Update(context.Background(), id, users.Patch{Name: &name}); err != nil {
		t.Error(err)
	}
}

func hasName(f *users.Fragment, name string) bool {
	return f != nil && strings.Contains(string(f.JSON()), `"name":"`+name+`"`)
}

// counter reads one series of a registry; its labels are joined by commas.
func counter(reg *stats.Registry, name, labels string) float64 {
	for _, f := range reg.Snapshot() {
		if f.Name != name {
			continue
		}
		for _, s := range f.Series {
			if strings.Join(s.LabelValues, ",") == labels {
				return s.Value
			}
		}
	}
	return -1
}

func wantUnavailable(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, users.ErrUnavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want ErrUnavailable and no context error", err)
	}
}
