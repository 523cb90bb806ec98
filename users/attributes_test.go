package users_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pinion/users"
)

// memoryAttributes keeps attributes outside of Rows. Hooks that are set stand before
// writes and before Ready.
type memoryAttributes struct {
	onWrite func(ctx context.Context, next func()) error
	ready   error

	mu   sync.Mutex
	held map[int64][]users.Attribute
}

func (m *memoryAttributes) write(ctx context.Context, change func()) error {
	next := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		change()
	}
	if m.onWrite != nil {
		return m.onWrite(ctx, next)
	}
	next()
	return nil
}

func (m *memoryAttributes) PutAttributes(ctx context.Context, id int64, attrs []users.Attribute) error {
	return m.write(ctx, func() { m.held[id] = slices.Clone(attrs) })
}

func (m *memoryAttributes) AddAttributes(ctx context.Context, id int64, attrs []users.Attribute) error {
	return m.write(ctx, func() {
		if len(m.held[id]) == 0 && len(attrs) > 0 {
			m.held[id] = slices.Clone(attrs)
		}
	})
}

func (m *memoryAttributes) DropAttributes(ctx context.Context, id int64) error {
	return m.write(ctx, func() { delete(m.held, id) })
}

func (m *memoryAttributes) Ready(context.Context) error { return m.ready }

func (m *memoryAttributes) Attributes(_ context.Context, ids []int64) (map[int64][]users.Attribute, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := make(map[int64][]users.Attribute)
	for _, id := range ids {
		if attrs := m.held[id]; attrs != nil {
			found[id] = slices.Clone(attrs)
		}
	}
	return found, nil
}

func (m *memoryAttributes) has(id int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held[id] != nil
}

func newAttributes(t *testing.T) (*memoryAttributes, *gate, users.Config) {
	db := openDB(t)
	g, m := newGate(db), &memoryAttributes{held: make(map[int64][]users.Attribute)}
	cfg := g.config()
	cfg.Attributes, cfg.AttributeWriter = m, m
	return m, g, cfg
}

var (
	attrsA = []users.Attribute{{Key: "k", Value: "a"}}
	attrsB = []users.Attribute{{Key: "k", Value: "b"}}
)

func hasAttribute(f *users.Fragment, value string) bool {
	return f != nil && strings.Contains(string(f.JSON()), `"attributes":{"k":"`+value+`"}`)
}

func newUser(attrs []users.Attribute, key string) users.NewUser {
	return users.NewUser{Name: "x", Email: "x@example.com", Attributes: attrs, Key: key}
}

// Attributes go where they are read from.
func TestAttributeWriter(t *testing.T) {
	ctx := context.Background()
	m, _, cfg := newAttributes(t)
	s := newService(t, cfg)
	f, id, err := s.Create(ctx, newUser(attrsA, ""))
	if err != nil || !hasAttribute(f, "a") {
		t.Fatalf("Create = %s, %v", f.JSON(), err)
	}
	if f, err = s.Update(ctx, id, users.Patch{Attributes: &attrsB}); err != nil || !hasAttribute(f, "b") {
		t.Errorf("Update = %s, %v", f.JSON(), err)
	}
	name := "y"
	if f, err = s.Update(ctx, id, users.Patch{Name: &name}); err != nil || !hasAttribute(f, "b") || !hasName(f, "y") {
		t.Errorf("Update of something else = %s, %v", f.JSON(), err)
	}
	if f, err = s.Update(ctx, id, users.Patch{Attributes: &[]users.Attribute{}}); err != nil || !strings.Contains(string(f.JSON()), `"attributes":{}`) {
		t.Errorf("Update to none = %s, %v", f.JSON(), err)
	}
	if _, err = s.Update(ctx, id, users.Patch{Attributes: &attrsA}); err != nil {
		t.Error(err)
	}
	if err := s.Delete(ctx, id); err != nil || m.has(id) {
		t.Errorf("Delete = %v, and attributes left: %v", err, m.has(id))
	}
	if _, err = s.Update(ctx, id, users.Patch{Attributes: &attrsA}); !errors.Is(err, users.ErrNotFound) || m.has(id) {
		t.Errorf("Update of nobody = %v, and attributes left: %v", err, m.has(id))
	}
}

// Where attributes cannot be written, a write that needs it stores nothing.
func TestAttributeWriterNotReady(t *testing.T) {
	ctx := context.Background()
	m, g, cfg := newAttributes(t)
	s := newService(t, cfg)
	_, id, err := s.Create(ctx, newUser(attrsA, ""))
	if err != nil {
		t.Fatal(err)
	}
	m.ready = errors.New("no connection")
	g.onWrite = func(context.Context, func() error) error {
		t.Error("Rows was asked")
		return nil
	}
	_, _, createErr := s.Create(ctx, newUser(attrsA, ""))
	_, updateErr := s.Update(ctx, id, users.Patch{Attributes: &attrsB})
	for what, err := range map[string]error{"Create": createErr, "Update": updateErr, "Delete": s.Delete(ctx, id)} {
		wantUnavailable(t, err)
		if !errors.Is(err, m.ready) || errors.Is(err, users.ErrUnknownOutcome) {
			t.Errorf("%s = %v", what, err)
		}
	}
	g.onWrite = nil
	name := "y"
	if f, err := s.Update(ctx, id, users.Patch{Name: &name}); err != nil || !hasName(f, "y") {
		t.Errorf("a write without attributes = %v", err)
	}
	if _, _, err := s.Create(ctx, newUser(nil, "")); err != nil {
		t.Errorf("a create without attributes = %v", err)
	}
}

// The rows are stored, the attributes perhaps: nobody knows, and no cache keeps the mix.
func TestAttributeWriterFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		m, _, cfg := newAttributes(t)
		s := newService(t, cfg)
		_, id, err := s.Create(ctx, newUser(attrsA, ""))
		if err != nil {
			t.Fatal(err)
		}
		m.onWrite = func(ctx context.Context, _ func()) error {
			mustLoad(t, s, id) // half of the write gets into the cache
			<-ctx.Done()
			return ctx.Err()
		}
		leaving, leave := context.WithCancel(ctx)
		name := "y"
		start := time.Now()
		time.AfterFunc(time.Millisecond, leave) // does not stop a write that has begun
		_, err = s.Update(leaving, id, users.Patch{Name: &name, Attributes: &attrsB})
		wantUnavailable(t, err)
		if !errors.Is(err, users.ErrUnknownOutcome) || time.Since(start) != users.DefaultPartTimeout {
			t.Errorf("Update = %v after %v", err, time.Since(start))
		}
		if f := s.CachedUser(0, id); f != nil {
			t.Errorf("cached %s", f.JSON())
		}
		m.onWrite = func(context.Context, func()) error { return errors.New("broken") }
		_, created, err := s.Create(ctx, newUser(attrsA, ""))
		if !errors.Is(err, users.ErrUnknownOutcome) || created == 0 {
			t.Errorf("Create = %d, %v", created, err)
		}
		err = s.Delete(ctx, id)
		if !errors.Is(err, users.ErrUnknownOutcome) || !m.has(id) {
			t.Errorf("Delete = %v", err)
		}
		if f := mustLoad(t, s, id)[0]; !f.Missing() {
			t.Errorf("deleted, and answered %s", f.JSON())
		}
		m.onWrite = nil
		if err := s.Delete(ctx, id); !errors.Is(err, users.ErrNotFound) || m.has(id) {
			t.Errorf("second Delete = %v, and attributes left: %v", err, m.has(id))
		}
	})
}

// keyed remembers the ids of keys, as Rows is to do.
type keyed struct {
	*gate
	ids map[string]int64
}

func (k *keyed) Create(ctx context.Context, u users.NewUser) (int64, error) {
	if id := k.ids[u.Key]; id != 0 && u.Key != "" {
		return id, nil
	}
	id, err := k.gate.Create(ctx, u)
	k.ids[u.Key] = id
	return id, err
}

// A create that is repeated finishes what the first attempt left undone, and takes back
// nothing of what came after it.
func TestAttributeWriterRepeats(t *testing.T) {
	ctx := context.Background()
	m, g, cfg := newAttributes(t)
	cfg.Rows = &keyed{gate: g, ids: make(map[string]int64)}
	s := newService(t, cfg)
	m.onWrite = func(context.Context, func()) error { return errors.New("broken") }
	_, id, err := s.Create(ctx, newUser(attrsA, "key"))
	if !errors.Is(err, users.ErrUnknownOutcome) {
		t.Fatal(err)
	}
	m.onWrite = nil
	for range 2 {
		f, again, err := s.Create(ctx, newUser(attrsA, "key"))
		if err != nil || again != id || !hasAttribute(f, "a") {
			t.Errorf("repeated: %d, %v", again, err)
		}
	}
	if _, err := s.Update(ctx, id, users.Patch{Attributes: &attrsB}); err != nil {
		t.Error(err)
	}
	f, again, err := s.Create(ctx, newUser(attrsA, "key"))
	if err != nil || again != id || !hasAttribute(f, "b") {
		t.Errorf("repeated after a change: %d, %v, %s", again, err, f.JSON())
	}
}

// A store that is full, or that may only be read, is still read.
func TestFailingWritesDoNotStopReads(t *testing.T) {
	ctx := context.Background()
	m, g, cfg := newAttributes(t)
	s := newService(t, cfg)
	for range 20 {
		if _, _, err := s.Create(ctx, newUser(attrsA, "")); err != nil {
			t.Fatal(err)
		}
	}
	m.onWrite = func(context.Context, func()) error { return errors.New("OOM command not allowed") }
	for id := int64(1); id <= 20; id++ {
		_, _ = s.Update(ctx, id, users.Patch{Attributes: &attrsB})
	}
	g.onWrite = func(context.Context, func() error) error { return errors.New("read-only") }
	for id := int64(1); id <= 20; id++ {
		wantUnavailable(t, s.Delete(ctx, id))
	}
	for id := int64(1); id <= 20; id++ {
		if f := mustLoad(t, s, id)[0]; f.Degraded() != 0 || !hasAttribute(f, "a") {
			t.Errorf("got %s, degraded %d", f.JSON(), f.Degraded())
		}
	}
	if breaker(&cfg, "sql") != 0 || breaker(&cfg, "attributes") != 0 {
		t.Error("a breaker is open")
	}
}
