package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pinion/internal/testserver"
)

// Bounds of the claim. An answer of the instance that has written is never older than the
// write. That of another one is so for so long at most, by whether Redis was there.
const (
	boundUp   = 100 * time.Millisecond
	boundDown = time.Second
)

// consistentIDs is how many users are written and read.
const consistentIDs = 100

// TestConsistency writes and reads the same users through two instances, and holds each
// answer against the writes that had been answered before it was asked for.
// PINION_CONSISTENCY=30s makes each run that long; PINION_SEED repeats the choices of one.
func TestConsistency(t *testing.T) {
	lasts, seed := 3*time.Second, rand.Uint64()
	var err error
	if text := os.Getenv("PINION_CONSISTENCY"); text != "" {
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	if text := os.Getenv("PINION_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	db := testserver.MariaDB(t)
	// With its data kept, what was cached before a restart is there after it: a removal
	// that got lost in between would show.
	redis := testserver.Redis(t, "--appendonly", "yes", "--appendfsync", "no")
	for _, run := range []struct {
		name  string
		cells bool
		fault func(*checker)
	}{
		{"all is well", false, nil},
		{"Redis restarted", false, func(c *checker) {
			c.s.redis.Stop()
			time.Sleep(lasts / 6)
			c.s.redis.Restart()
		}},
		{"Redis paused", false, func(c *checker) {
			c.s.redis.Pause()
			time.Sleep(max(lasts/6, 1200*time.Millisecond))
			c.s.redis.Resume()
		}},
		{"connections to Redis cut again and again", false, func(c *checker) {
			for range 5 {
				c.s.toRedis.Stop()
				time.Sleep(lasts / 60)
				c.s.toRedis.accept()
				time.Sleep(lasts / 30)
			}
		}},
		{"two cells and another instance", true, nil},
	} {
		t.Run(run.name, func(t *testing.T) {
			s := newStack(t, db, redis)
			s.ask(t, "FLUSHALL")
			flags := []string{"-demo", "200", "-redis-timeout", "250ms"}
			first := flags
			if run.cells {
				needTwoCPUs(t)
				first = append([]string{"-cells", "2", "-cpus", twoCPUs(t).String(), "-steer", "off"}, flags...)
			}
			c := &checker{t: t, s: s, client: newClient()}
			c.instances = [2]*process{s.serve(t, first...), s.serve(t, flags...)}
			c.instances[1].coherent(t, 1)
			if run.cells {
				c.instances[0].stderr.wait(t, `msg="cell ready" cell=1`)
				c.instances[0].coherent(t, 2)
			} else {
				c.instances[0].coherent(t, 1)
			}
			c.run(lasts, seed, run.fault)
			c.report(run.name, seed)
			c.client.close()
			for _, p := range c.instances {
				stop(t, p)
			}
		})
	}
}

// checker knows which writes were answered, and when.
type checker struct {
	t         *testing.T
	s         *stack
	client    *client
	instances [2]*process
	users     [consistentIDs]versions

	stalls  stalls
	windows []window // when Redis was not there; of the test's goroutine until the run is over

	writes, unknown, reads, degraded, failed atomic.Int64

	mu    sync.Mutex
	stale []staleness
}

// versions are the writes of one user. They follow one another, so that there is no doubt
// which one is newer.
type versions struct {
	writing sync.Mutex
	mu      sync.Mutex
	last    int
	acked   []ack
}

// ack is the answer to a write.
type ack struct {
	version, instance int
	at                time.Time
}

// window is a time without removals that are pushed.
type window struct{ from, to time.Time }

// staleness is an answer that was older than a write that had been answered.
type staleness struct {
	id                  int64
	got, want           int
	writer, reader      int
	acked, asked, given time.Time
}

// run writes and reads for a while, with a fault in the middle.
func (c *checker) run(lasts time.Duration, seed uint64, fault func(*checker)) {
	c.t.Helper()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { c.stalls.watch(done) })
	worker := func(n uint64, work func(*rand.Rand)) {
		rng := rand.New(rand.NewPCG(seed, n))
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					work(rng)
				}
			}
		})
	}
	for n := range uint64(3) {
		worker(n, c.write)
	}
	for n := range uint64(4) {
		worker(100+n, c.read)
	}
	time.Sleep(lasts / 3)
	if fault != nil {
		c.disturb(fault)
	}
	time.Sleep(lasts - lasts/3)
	close(done)
	wg.Wait()
	c.final()
}

// disturb runs a fault and notes how long removals were not pushed to both instances.
func (c *checker) disturb(fault func(*checker)) {
	c.t.Helper()
	before := [2]int{c.instances[0].turns(), c.instances[1].turns()}
	w := window{from: time.Now()}
	fault(c)
	eventually(c.t, 10*time.Second, "the shared cache is used again", func() bool {
		return c.instances[0].turns() > before[0] && c.instances[1].turns() > before[1]
	})
	time.Sleep(50 * time.Millisecond) // after a cut that was the last but one
	eventually(c.t, 10*time.Second, "no breaker is open", func() bool {
		return c.instances[0].metric(c.t, `source_breaker_state{source="l2"}`)+c.instances[1].metric(c.t, `source_breaker_state{source="l2"}`) == 0
	})
	w.to = time.Now()
	c.windows = append(c.windows, w)
}

// write writes the next version of a user that nobody else is writing.
func (c *checker) write(rng *rand.Rand) {
	time.Sleep(time.Duration(rng.IntN(4)) * time.Millisecond)
	id, through := rng.IntN(consistentIDs), rng.IntN(2)
	u := &c.users[id]
	if !u.writing.TryLock() {
		return
	}
	defer u.writing.Unlock()
	u.mu.Lock()
	u.last++
	version := u.last
	u.mu.Unlock()
	a := c.client.send("PATCH", fmt.Sprintf("%s/api/users/%d", c.instances[through].url, id+1), fmt.Sprintf(`{"name":"v%d"}`, version), c.sometimesFresh(rng)...)
	at := time.Now()
	switch a.status {
	case 200:
		c.writes.Add(1)
		if got := a.person().Name; got != fmt.Sprintf("v%d", version) {
			c.t.Errorf("write of v%d was answered with %q", version, got)
		}
		u.mu.Lock()
		u.acked = append(u.acked, ack{version: version, instance: through, at: at})
		u.mu.Unlock()
	case 503:
		c.unknown.Add(1)
	default:
		c.t.Errorf("write: %s: %s", a.outcome(), a.body)
	}
}

// sometimesFresh has some requests come on connections of their own, to any cell.
func (c *checker) sometimesFresh(rng *rand.Rand) []string {
	if rng.IntN(4) == 0 {
		return []string{"Connection: close"}
	}
	return nil
}

// read reads some users and judges what it got.
func (c *checker) read(rng *rand.Rand) {
	time.Sleep(time.Duration(rng.IntN(1500)) * time.Microsecond)
	through := rng.IntN(2)
	ids := rng.Perm(consistentIDs)[:1+rng.IntN(8)]
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = strconv.Itoa(id + 1)
	}
	a := c.client.send("GET", c.instances[through].url+"/api/users?ids="+strings.Join(list, ","), "", c.sometimesFresh(rng)...)
	if a.status != 200 {
		c.failed.Add(1)
		c.t.Errorf("read: %s: %s", a.outcome(), a.body)
		return
	}
	var batch struct {
		Users    []person
		Degraded []string
	}
	if err := json.Unmarshal([]byte(a.body), &batch); err != nil || len(batch.Users) != len(ids) {
		c.t.Errorf("%v: %s", err, a.body)
		return
	}
	if batch.Degraded != nil {
		c.degraded.Add(1)
	}
	for _, p := range batch.Users {
		c.reads.Add(1)
		got, _ := strconv.Atoi(strings.TrimPrefix(p.Name, "v")) // 0: not written yet
		c.judge(int(p.ID)-1, got, through, a)
	}
}

// judge notes an answer that is older than a write that was answered before.
func (c *checker) judge(id, got, reader int, a answer) {
	u := &c.users[id]
	u.mu.Lock()
	defer u.mu.Unlock()
	if got > u.last {
		c.t.Errorf("user %d: v%d, which nobody wrote", id+1, got)
	}
	// The first newer write of each instance that was answered in time is the one that
	// has been missed for the longest.
	var missed [2]*ack
	for i := len(u.acked) - 1; i >= 0 && u.acked[i].version > got; i-- {
		if w := &u.acked[i]; w.at.Before(a.sent) {
			missed[w.instance] = w
		}
	}
	for _, w := range missed {
		if w != nil {
			c.mu.Lock()
			c.stale = append(c.stale, staleness{
				id: int64(id) + 1, got: got, want: w.version, writer: w.instance, reader: reader,
				acked: w.at, asked: a.sent, given: a.sent.Add(a.took),
			})
			c.mu.Unlock()
		}
	}
}

// final compares all users, as both instances answer them, with what is stored.
func (c *checker) final() {
	c.t.Helper()
	time.Sleep(boundUp)
	for _, row := range c.s.db.Admin(fmt.Sprintf("SELECT CONCAT(id, ' ', name) FROM %s WHERE id <= %d", c.s.table("users"), consistentIDs)) {
		id, name, _ := strings.Cut(row, " ")
		n, _ := strconv.Atoi(id)
		u := &c.users[n-1]
		if len(u.acked) == 0 {
			continue
		}
		version, err := strconv.Atoi(strings.TrimPrefix(name, "v"))
		if done := u.acked[len(u.acked)-1].version; err != nil || version < done || version > u.last {
			c.t.Errorf("user %s has %s; v%d was answered as done, v%d is the last that was sent", id, name, done, u.last)
		}
		for i, p := range c.instances {
			if a := c.client.send("GET", p.url+"/api/users/"+id, ""); a.person().Name != name {
				c.t.Errorf("user %s: instance %d answers %s in the end, %s is stored", id, i, a.body, name)
			}
		}
	}
}

// report judges what was stale by the claim, and says how it went.
func (c *checker) report(name string, seed uint64) {
	c.t.Helper()
	var worst [2]time.Duration // with Redis, and without
	violations, own, excused := 0, 0, 0
	for _, s := range c.stale {
		age := s.asked.Sub(s.acked)
		bound, down := boundUp, 0
		for _, w := range c.windows {
			if s.acked.Before(w.to) && s.asked.After(w.from) {
				bound, down = boundDown, 1
			}
		}
		if s.writer != s.reader {
			worst[down] = max(worst[down], age)
			if age <= bound {
				continue
			}
			if stalled := c.stalls.within(s.acked, s.given); age <= bound+stalled {
				excused++
				c.t.Logf("user %d: v%d asked for %v after v%d was answered; all processes were stalled for %v of it", s.id, s.got, age, s.want, stalled)
				continue
			}
		} else {
			own++
		}
		if violations++; violations <= 10 {
			c.t.Errorf("user %d: instance %d answered v%d, asked for %v after instance %d had answered the write of v%d",
				s.id, s.reader, s.got, age, s.writer, s.want)
		}
	}
	var without time.Duration
	for _, w := range c.windows {
		without += w.to.Sub(w.from)
	}
	c.t.Logf("%s: seed %d; %d writes done, %d answered with 503; %d users read, %d answers without attributes; "+
		"%d of them stale for a moment, the worst %v after the write with Redis, %v without (%v of the run); "+
		"stalls of the test itself: %v in all, the longest %v; %d violations, %d of them by the instance that wrote, %d excused by stalls",
		name, seed, c.writes.Load(), c.unknown.Load(), c.reads.Load(), c.degraded.Load(),
		len(c.stale), worst[0].Round(10*time.Microsecond), worst[1].Round(10*time.Microsecond), without.Round(time.Millisecond),
		c.stalls.all().Round(time.Millisecond), c.stalls.longest.Round(time.Millisecond), violations, own, excused)
	if c.writes.Load() < 100 || c.reads.Load() < 500 {
		c.t.Error("that was hardly a test")
	}
}

// stalls are times when this process did not run although it wanted to: the machine was
// busy with others, so what the instances did then proves nothing.
type stalls struct {
	mu      sync.Mutex
	times   []window
	longest time.Duration
}

// stallTick is how often the watch wakes up; waking that much later is a stall.
const stallTick = 5 * time.Millisecond

func (s *stalls) watch(done <-chan struct{}) {
	last := time.Now()
	for {
		select {
		case <-done:
			return
		case <-time.After(stallTick):
		}
		now := time.Now()
		if d := now.Sub(last); d > 2*stallTick {
			s.mu.Lock()
			s.times = append(s.times, window{last.Add(stallTick), now})
			s.longest = max(s.longest, d-stallTick)
			s.mu.Unlock()
		}
		last = now
	}
}

// within is how much of a time was stalled.
func (s *stalls) within(from, to time.Time) (sum time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.times {
		sum += max(0, earlier(w.to, to).Sub(later(w.from, from)))
	}
	return sum
}

func (s *stalls) all() (sum time.Duration) {
	for _, w := range s.times {
		sum += w.to.Sub(w.from)
	}
	return sum
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
