package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pinion/users/members/service"
)

// kind is a kind of request: a read of a user by where it is, or a write.
type kind string

const (
	inL1           kind = "user in L1"
	pastTTL        kind = "in L1 past its TTL" // and only there
	inL2           kind = "in L2"              // and not in L1
	inNeither      kind = "in neither"
	plainWrite     kind = "write"
	attributeWrite kind = "write of attributes"
	create         kind = "create"
)

func kinds() []kind {
	return []kind{inL1, pastTTL, inL2, inNeither, plainWrite, attributeWrite, create}
}

// Ids that are used for the same again and again; others are used once.
const (
	hotIDs       = 20 // from 1
	firstWritten = 101
	writtenIDs   = 20
	firstCold    = 200
)

// rig is two instances on a stack, and what is known of their users.
type rig struct {
	s     *stack
	a, b  *process
	c     *client
	table io.Writer // gets a line for each fault

	cold    atomic.Int64
	old     []int64 // users in L1 past their TTL
	mu      sync.Mutex
	written map[int64]*history
	made    map[string]*making
}

// history is the values that were written to a user's name, in their order.
type history struct {
	last, acked, ackedAttribute int
}

// making is a create: its body, and whether it was answered as done, or as not done.
type making struct {
	body           string
	acked, refused bool
}

func newRig(t *testing.T, s *stack) *rig {
	t.Helper()
	r := &rig{s: s, c: newClient(), table: new(bytes.Buffer), written: map[int64]*history{}, made: map[string]*making{}}
	r.cold.Store(firstCold)
	for id := int64(firstWritten); id < firstWritten+writtenIDs; id++ {
		r.written[id] = new(history)
	}
	s.ask(t, "FLUSHALL") // of the rig before
	r.a = s.serve(t, faultFlags...)
	r.b = s.serve(t, faultFlags...)
	r.a.coherent(t, 1)
	r.b.coherent(t, 1)
	t.Cleanup(func() { r.c.close() })
	if path := os.Getenv("PINION_FAULT_TABLE"); path != "" {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		r.table = f
	}
	return r
}

// next is a user that nobody has asked for yet.
func (r *rig) next() int64 { return r.cold.Add(1) }

func (r *rig) get(p *process, id int64) answer {
	return r.c.send("GET", fmt.Sprintf("%s/api/users/%d", p.url, id), "")
}

func (r *rig) batch(p *process, ids []int64) answer {
	text := strings.Join(strings.Fields(fmt.Sprint(ids)), ",") // "[1,2]"
	return r.c.send("POST", p.url+"/api/users/lookup", `{"ids":`+text+`}`)
}

func hot() (ids []int64) {
	for id := range int64(hotIDs) {
		ids = append(ids, id+1)
	}
	return ids
}

// watch collects the answers of one fault.
type watch struct {
	mu       sync.Mutex
	began    time.Time // zero: not yet
	ended    time.Time // zero: not yet
	outcomes map[kind]map[string]int
	slowest  map[kind]time.Duration
	wrong    []string
}

func (w *watch) mark(at *time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*at = time.Now()
}

// see notes an answer. Whatever happens, there is one, in time and without a 500.
func (w *watch) see(k kind, a answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := a.outcome()
	// The second is for a machine that does something else, too.
	if a.took > requestTimeout+time.Second {
		w.wrong = append(w.wrong, fmt.Sprintf("%s: %s after %v", k, text, a.took))
	}
	if a.err != nil || a.status == 500 || a.status == 503 && a.retryAfter == "" && a.location == "" {
		w.wrong = append(w.wrong, fmt.Sprintf("%s: %s, Retry-After %q: %s", k, text, a.retryAfter, a.body))
	}
	w.slowest[k] = max(w.slowest[k], a.took)
	if w.began.IsZero() || a.sent.Before(w.began) || !w.ended.IsZero() && a.sent.Add(a.took).After(w.ended) {
		return
	}
	if w.outcomes[k] == nil {
		w.outcomes[k] = map[string]int{}
	}
	w.outcomes[k][text]++
}

// try runs one fault.
func (r *rig) try(t *testing.T, f fault) {
	shared := r.prepare(t)
	var old []int64
	if _, listed := f.want[pastTTL]; listed {
		old = r.age(t, 70)
	}
	before := r.measure(t)
	w := &watch{outcomes: map[kind]map[string]int{}, slowest: map[kind]time.Duration{}}
	done := make(chan struct{})
	var wg sync.WaitGroup
	load := func(k kind, next func(i int) (answer, bool)) {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				case <-time.After(20 * time.Millisecond):
				}
				if a, ok := next(i); ok {
					w.see(k, a)
				}
			}
		})
	}
	during := func() bool { w.mu.Lock(); defer w.mu.Unlock(); return !w.began.IsZero() && w.ended.IsZero() }
	load(inL1, func(i int) (answer, bool) { return r.get(r.a, int64(i%hotIDs)+1), true })
	load(inNeither, func(int) (answer, bool) { return r.get(r.a, r.next()), true })
	once := func(ids []int64) func(int) (answer, bool) {
		return func(int) (answer, bool) {
			if len(ids) == 0 || !during() {
				return answer{}, false
			}
			id := ids[0]
			ids = ids[1:]
			return r.get(r.a, id), true
		}
	}
	load(inL2, once(shared))
	load(pastTTL, once(old))
	load(plainWrite, func(i int) (answer, bool) { return r.write(int64(firstWritten+i%(writtenIDs/2)), false), true })
	load(attributeWrite, func(i int) (answer, bool) {
		return r.write(int64(firstWritten+writtenIDs/2+i%(writtenIDs/2)), true), true
	})
	load(create, func(i int) (answer, bool) { return r.create(fmt.Sprintf("%s %d", f.name, i)), true })

	time.Sleep(100 * time.Millisecond)
	f.begin(t, r.s)
	w.mark(&w.began)
	r.hold(t, cmp.Or(f.lasts, usual), before)
	w.mark(&w.ended)
	f.end(t, r.s)
	back := time.Now()
	recovered := r.recovered(t, back)
	close(done)
	wg.Wait()
	r.judge(t, f, w, recovered)
	r.verify(t, f)
	r.settled(t, before, 0)
	r.pools(t)
}

// prepare has users in L2 and not in L1, which it returns, and others in both.
func (r *rig) prepare(t *testing.T) (shared []int64) {
	t.Helper()
	for range 60 {
		shared = append(shared, r.next())
	}
	for _, a := range []answer{r.batch(r.b, shared), r.batch(r.b, hot()), r.batch(r.a, hot())} {
		if a.outcome() != "200" {
			t.Fatalf("%s: %.300s", a.outcome(), a.body)
		}
	}
	r.warm()
	return shared
}

// age returns users that L1 has past their TTL, and only L1. Those without a member live
// for less than a second, so the first call makes enough of them for all.
func (r *rig) age(t *testing.T, n int) (old []int64) {
	t.Helper()
	if r.old == nil {
		for range 1000 {
			r.old = append(r.old, r.next())
		}
		r.s.members.set(service.Knobs{FailRatio: 1})
		if a := r.batch(r.a, r.old); a.outcome() != "200 without member" {
			t.Fatalf("%s: %.300s", a.outcome(), a.body)
		}
		r.s.members.set(service.Knobs{})
		time.Sleep(1100 * time.Millisecond)
	}
	old, r.old = r.old[:n], r.old[n:]
	return old
}

// warm has both instances open the connections they may have.
func (r *rig) warm() {
	var wg sync.WaitGroup
	for range 24 {
		for _, p := range []*process{r.a, r.b} {
			id := r.next()
			wg.Go(func() { r.c.send("PATCH", fmt.Sprintf("%s/api/users/%d", p.url, id), `{"phone":"1"}`) })
		}
	}
	wg.Wait()
	r.c.close()
}

// write writes the next value to a user.
func (r *rig) write(id int64, attribute bool) answer {
	r.mu.Lock()
	h := r.written[id]
	h.last++
	n := h.last
	r.mu.Unlock()
	body := fmt.Sprintf(`{"name":"v%d","address":"v%d"}`, n, n)
	if attribute {
		body = fmt.Sprintf(`{"name":"v%d","attributes":{"v":"v%d"}}`, n, n)
	}
	a := r.c.send("PATCH", fmt.Sprintf("%s/api/users/%d", r.a.url, id), body)
	if a.status == 200 {
		r.mu.Lock()
		defer r.mu.Unlock()
		h.acked = n
		if attribute {
			h.ackedAttribute = n
		}
	}
	return a
}

// create makes a user, or tries to.
func (r *rig) create(name string) answer {
	m := &making{body: `{"name":"` + name + `","email":"x@example.com","attributes":{"made":"yes"}}`}
	a := r.c.send("POST", r.a.url+"/api/users", m.body, "Idempotency-Key: "+name)
	m.acked = a.status == 201
	m.refused = a.outcome() == "503" && a.location == ""
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made[name] = m
	return a
}

// recovered returns how long after back all is as ever: users come whole, also those that
// were asked for meanwhile, writes of all kinds are done, no breaker is open, and what one
// instance reads the other finds in the shared cache.
func (r *rig) recovered(t *testing.T, back time.Time) time.Duration {
	t.Helper()
	asked := hot()
	for id := r.cold.Load(); len(asked) < hotIDs+50; id-- {
		asked = append(asked, id)
	}
	const limit = 10 * time.Second // of a machine that does something else, too
	var last string
	normal := func() bool {
		for _, p := range []*process{r.b, r.a} {
			if a := r.batch(p, asked); a.outcome() != "200" {
				last = "users of before: " + a.outcome()
				return false
			}
			id := r.next()
			if a := r.get(p, id); a.outcome() != "200" {
				last = "read: " + a.outcome()
				return false
			}
			if a := r.c.send("PATCH", fmt.Sprintf("%s/api/users/%d", p.url, id), `{"attributes":{"a":"b"}}`); a.outcome() != "200" {
				last = "write: " + a.outcome()
				return false
			}
			for _, source := range []string{"sql", "attributes", "members", "l2"} {
				if p.metric(t, `source_breaker_state{source="`+source+`"}`) != 0 {
					last = "breaker of " + source
					return false
				}
			}
		}
		id := r.next()
		found := func() float64 { return r.a.metric(t, `cache_requests_total{layer="l2",result="hit"}`) }
		before := found()
		r.get(r.b, id)
		time.Sleep(5 * time.Millisecond) // the fill waits for nobody
		r.get(r.a, id)
		last = "the shared cache is not used"
		return found() > before
	}
	for !normal() {
		if time.Since(back) > limit {
			t.Fatalf("not back to normal %v after the source was: %s\n%s", limit, last, r.a.stderr)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(back)
}

// judge compares what was seen with what is allowed, and writes the row of the table.
func (r *rig) judge(t *testing.T, f fault, w *watch, recovered time.Duration) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, text := range w.wrong {
		if i < 5 {
			t.Errorf("%s", text)
		}
	}
	row, full := "| "+f.name, ""
	slowest := time.Duration(0)
	for _, k := range kinds() {
		want, listed := f.want[k]
		switch {
		case listed:
		case k == create:
			want = `^201$`
		default:
			want = whole
		}
		must, found := f.must[k], false
		var seen []string
		for _, text := range slices.Sorted(maps.Keys(w.outcomes[k])) {
			n := w.outcomes[k][text]
			seen = append(seen, fmt.Sprintf("%s (%d)", text, n))
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("%s: %q %d times, want %s", k, text, n, want)
			}
			found = found || must != "" && regexp.MustCompile(must).MatchString(text)
		}
		if len(seen) == 0 && k != pastTTL && k != inL2 {
			t.Errorf("%s: nothing was seen", k)
		}
		if must != "" && !found {
			t.Errorf("%s: %v, and none that is %s", k, seen, must)
		}
		slowest = max(slowest, w.slowest[k])
		full += fmt.Sprintf("\n%s: %s; slowest %v", k, strings.Join(seen, ", "), w.slowest[k].Round(time.Millisecond))
		row += " | " + cmp.Or(strings.Join(slices.Sorted(maps.Keys(w.outcomes[k])), ", "), "–")
	}
	row += fmt.Sprintf(" | %v | %v |", slowest.Round(10*time.Millisecond), recovered.Round(10*time.Millisecond))
	t.Logf("%s%s", row, full)
	if _, err := io.WriteString(r.table, row+"\n"); err != nil {
		t.Error(err)
	}
}

// verify compares what clients were told with what is stored: nothing that was done is
// lost, nothing is stored that was not asked for, and a create that is sent again under
// its key has made one user.
func (r *rig) verify(t *testing.T, f fault) {
	t.Helper()
	for _, row := range r.s.db.Admin(fmt.Sprintf("SELECT CONCAT(id, ' ', name) FROM %s WHERE id BETWEEN %d AND %d",
		r.s.table("users"), firstWritten, firstWritten+writtenIDs-1)) {
		var id int64
		var n int
		if _, err := fmt.Sscanf(row, "%d v%d", &id, &n); err != nil {
			continue // not written yet
		}
		h := r.written[id]
		if n < h.acked || n > h.last {
			t.Errorf("user %d has v%d; %d was answered as done, %d is the last that was sent", id, n, h.acked, h.last)
		}
		for _, p := range []*process{r.a, r.b} {
			u := r.get(p, id).person()
			if u.Name != fmt.Sprintf("v%d", n) {
				t.Errorf("user %d: an instance answers %q, v%d is stored", id, u.Name, n)
			}
			attribute, _ := strconv.Atoi(strings.TrimPrefix(u.Attributes["v"], "v"))
			if (attribute < h.ackedAttribute && !f.forgets) || attribute > h.last {
				t.Errorf("user %d has the attribute v%d; v%d was answered as done", id, attribute, h.ackedAttribute)
			}
		}
		if f.forgets {
			h.ackedAttribute = 0
		}
	}
	for name, n := range r.stored() {
		if m := r.made[name]; n != 1 || m != nil && m.refused {
			t.Errorf("%q is stored %d times; it was %+v", name, n, m)
		}
	}
	for name, m := range r.made {
		if m.acked {
			continue
		}
		a := r.c.send("POST", r.a.url+"/api/users", m.body, "Idempotency-Key: "+name)
		if u := a.person(); a.status != 201 || u.Attributes["made"] != "yes" {
			t.Errorf("create again: %d %s", a.status, a.body)
		}
	}
	stored := r.stored()
	for name := range r.made {
		if stored[name] != 1 {
			t.Errorf("%q was made %d times", name, stored[name])
		}
	}
	clear(r.made)
}

// stored is how often each user is there that was made.
func (r *rig) stored() map[string]int {
	stored := map[string]int{}
	for _, name := range r.s.db.Admin("SELECT name FROM " + r.s.table("users") + " WHERE id > 6000") {
		stored[name]++
	}
	return stored
}
