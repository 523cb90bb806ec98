package main

import (
	"database/sql"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"pinion/internal/testserver"
	"pinion/users/members"
	"pinion/users/members/service"
)

// Limits of the instances that faults are tried on: short, so that a source that hangs
// costs the test little. Time to recover does not depend on them.
var faultFlags = []string{
	"-demo", "6000", "-db-conns", "8", "-request-timeout", requestTimeout.String(), "-db-timeout", "700ms", "-redis-timeout", "250ms", "-members-timeout", "250ms",
}

const requestTimeout = 1500 * time.Millisecond

// fault is something that happens to a source, and what clients may see meanwhile.
type fault struct {
	name       string
	begin, end func(t *testing.T, s *stack)
	lasts      time.Duration // 0: a second
	// want says how each answer that was asked for and given while it lasts must look. A
	// kind that is not listed must be answered as if nothing had happened.
	want map[kind]string
	// must is what has to be among them.
	must map[kind]string
	// forgets says that Redis loses the attributes.
	forgets bool
}

const (
	whole      = `^200$`
	refused    = `^503( unknown)?$`
	either     = `^(200|503|503 unknown)$`
	eitherNew  = `^(201|503|503 unknown)$`
	noMember   = `^200( without member)?$`
	noMemberIn = `^201( without member)?$`
	noAttrs    = `^200( without attributes)?$`
	stale      = `^200 stale without member$`
)

// noRows is what the loss of the database means: what is cached goes on.
func noRows() map[kind]string {
	return map[kind]string{pastTTL: stale, inNeither: refused, plainWrite: refused, attributeWrite: refused, create: refused}
}

// fewRows is that where some calls get through.
func fewRows() map[kind]string {
	return map[kind]string{
		pastTTL: `^200( stale without member)?$`, inNeither: either, plainWrite: either, attributeWrite: either, create: eitherNew,
	}
}

// noRedis is what the loss of Redis means.
func noRedis() map[kind]string {
	return map[kind]string{
		inL1: noAttrs, inL2: noAttrs, inNeither: noAttrs, plainWrite: noAttrs,
		attributeWrite: `^(503( unknown)?|200( without attributes)?)$`, create: `^(503( unknown)?|201( without attributes)?)$`,
	}
}

// noMembers is what the loss of the member service means.
func noMembers() map[kind]string {
	return map[kind]string{inNeither: noMember, plainWrite: noMember, attributeWrite: noMember, create: noMemberIn}
}

func spoilDB(kind, attributes string) func(*testing.T, *stack) {
	return func(_ *testing.T, s *stack) { s.toDB.spoil(kind, attributes) }
}

func delayDB(by time.Duration) func(*testing.T, *stack) {
	return func(_ *testing.T, s *stack) { s.toDB.delay(by) }
}

func delayRedis(by time.Duration) func(*testing.T, *stack) {
	return func(_ *testing.T, s *stack) { s.toRedis.delay(by) }
}

func spoilRedis(kind, attributes string) func(*testing.T, *stack) {
	return func(_ *testing.T, s *stack) { s.toRedis.spoil(kind, attributes) }
}

func spoilMembers(kind, attributes string) func(*testing.T, *stack) {
	return func(_ *testing.T, s *stack) { s.toMembers.spoil(kind, attributes) }
}

func healDB(_ *testing.T, s *stack)      { s.toDB.heal() }
func healRedis(_ *testing.T, s *stack)   { s.toRedis.heal() }
func healMembers(_ *testing.T, s *stack) { s.toMembers.heal() }

func sqlFaults() []fault {
	return []fault{
		{
			name: "MariaDB refuses connections", want: noRows(), must: map[kind]string{pastTTL: stale, inNeither: `^503$`},
			begin: func(_ *testing.T, s *stack) { s.toDB.Stop() }, end: func(_ *testing.T, s *stack) { s.toDB.accept() },
		},
		{
			name: "MariaDB hangs (SIGSTOP)", want: noRows(), must: map[kind]string{pastTTL: stale, inNeither: `^503$`}, lasts: 2 * time.Second,
			begin: func(_ *testing.T, s *stack) { s.db.Pause() }, end: func(_ *testing.T, s *stack) { s.db.Resume() },
		},
		{
			name:  "MariaDB answers 50 ms later",
			want:  map[kind]string{pastTTL: whole},
			begin: delayDB(50 * time.Millisecond), end: healDB,
		},
		{
			name: "MariaDB answers 5 s later", want: noRows(), lasts: 2 * time.Second,
			begin: delayDB(5 * time.Second), end: healDB,
		},
		{
			name: "MariaDB is cut off within answers", want: fewRows(), must: map[kind]string{inNeither: `^503$`},
			begin: spoilDB("limit_data", `{"bytes":400}`), end: healDB,
		},
		{
			name: "MariaDB talks nonsense", want: noRows(), must: map[kind]string{inNeither: `^503$`}, lasts: 2 * time.Second,
			begin: spoilDB("garble", `{}`), end: healDB,
		},
		{
			name: "MariaDB killed (-9), started again", want: noRows(), must: map[kind]string{pastTTL: stale, inNeither: `^503$`},
			begin: func(_ *testing.T, s *stack) { s.db.Kill() }, end: func(_ *testing.T, s *stack) { s.db.Restart() },
		},
		{
			name: "MariaDB has no connections left", want: fewRows(), must: map[kind]string{inNeither: `^503$`},
			begin: takeConnections, end: func(_ *testing.T, s *stack) { s.leave() },
		},
		{
			name:  "MariaDB is read-only",
			want:  map[kind]string{pastTTL: whole, plainWrite: `^503$`, attributeWrite: `^503$`, create: `^503$`},
			must:  map[kind]string{plainWrite: `^503$`, create: `^503$`},
			begin: func(_ *testing.T, s *stack) { s.db.Admin("SET GLOBAL read_only = 1") },
			end:   func(_ *testing.T, s *stack) { s.db.Admin("SET GLOBAL read_only = 0") },
		},
		{
			name:  "MariaDB resolves deadlocks",
			want:  map[kind]string{pastTTL: whole, plainWrite: either, attributeWrite: either},
			must:  map[kind]string{plainWrite: whole},
			begin: rival, end: func(_ *testing.T, s *stack) { s.leave() },
		},
	}
}

func redisFaults() []fault {
	emptied := map[kind]string{inL1: noAttrs, inL2: noAttrs, inNeither: noAttrs, plainWrite: noAttrs}
	return []fault{
		{
			name: "Redis refuses connections", want: noRedis(), must: map[kind]string{inNeither: `without`, attributeWrite: `^503$`},
			begin: func(_ *testing.T, s *stack) { s.toRedis.Stop() }, end: func(_ *testing.T, s *stack) { s.toRedis.accept() },
		},
		{
			name: "Redis hangs (SIGSTOP)", want: noRedis(), must: map[kind]string{inNeither: `without`, attributeWrite: `^503`}, lasts: 2 * time.Second,
			begin: func(_ *testing.T, s *stack) { s.redis.Pause() }, end: func(_ *testing.T, s *stack) { s.redis.Resume() },
		},
		{name: "Redis answers 50 ms later", begin: delayRedis(50 * time.Millisecond), end: healRedis},
		{
			name: "Redis answers 5 s later", want: noRedis(), must: map[kind]string{inNeither: `without`}, lasts: 2 * time.Second,
			begin: delayRedis(5 * time.Second), end: healRedis,
		},
		{
			name: "Redis is cut off within answers", want: noRedis(),
			begin: spoilRedis("limit_data", `{"bytes":150}`), end: healRedis,
		},
		{
			name: "Redis talks nonsense", want: noRedis(), must: map[kind]string{inNeither: `without`},
			begin: spoilRedis("garble", `{}`), end: healRedis,
		},
		{
			name: "Redis restarted without its data", want: noRedis(), forgets: true,
			begin: func(_ *testing.T, s *stack) { s.redis.Stop() }, end: func(_ *testing.T, s *stack) { s.redis.Restart() },
		},
		{
			name: "Redis emptied (FLUSHALL)", want: emptied, forgets: true,
			begin: func(t *testing.T, s *stack) { s.ask(t, "FLUSHALL") }, end: func(*testing.T, *stack) {},
		},
		{
			name:  "Redis full (noeviction)",
			want:  map[kind]string{attributeWrite: `^503 unknown$`, create: `^503 unknown$`},
			must:  map[kind]string{attributeWrite: `^503 unknown$`},
			begin: func(t *testing.T, s *stack) { s.ask(t, "CONFIG SET maxmemory 1") },
			end:   func(t *testing.T, s *stack) { s.ask(t, "CONFIG SET maxmemory 0") },
		},
	}
}

func memberFaults() []fault {
	must := map[kind]string{inNeither: `without member`}
	knobs := func(k service.Knobs) func(*testing.T, *stack) {
		return func(_ *testing.T, s *stack) { s.members.set(k) }
	}
	return []fault{
		{
			name: "members refuses connections", want: noMembers(), must: must,
			begin: func(_ *testing.T, s *stack) { s.toMembers.Stop() }, end: func(_ *testing.T, s *stack) { s.toMembers.accept() },
		},
		{name: "members hangs", want: noMembers(), must: must, begin: knobs(service.Knobs{HangRatio: 1}), end: knobs(service.Knobs{})},
		{name: "members answers 50 ms later", begin: knobs(service.Knobs{Latency: 50 * time.Millisecond}), end: knobs(service.Knobs{})},
		{
			name: "members answers 5 s later", want: noMembers(), must: must,
			begin: knobs(service.Knobs{Latency: 5 * time.Second}), end: knobs(service.Knobs{}),
		},
		{
			name: "members is cut off within answers", want: noMembers(), must: must,
			begin: spoilMembers("limit_data", `{"bytes":100}`), end: healMembers,
		},
		{name: "members talks nonsense", want: noMembers(), must: must, begin: knobs(service.Knobs{GarbageRatio: 1}), end: knobs(service.Knobs{})},
		{name: "members answers 500", want: noMembers(), must: must, begin: knobs(service.Knobs{FailRatio: 1}), end: knobs(service.Knobs{})},
		{
			name: "members restarted", want: noMembers(), must: must,
			begin: func(_ *testing.T, s *stack) { s.members.stop() }, end: func(_ *testing.T, s *stack) { s.members.start() },
		},
	}
}

// takeConnections takes all connections of MariaDB, also those the instances have.
func takeConnections(t *testing.T, s *stack) {
	admin := s.connect(t, "admin", "")
	admin.SetMaxOpenConns(1) // another one may not be had
	run := func(text string) {
		if _, err := admin.Exec(text); err != nil && !strings.Contains(err.Error(), "Unknown thread id") {
			t.Fatalf("%s: %v", text, err)
		}
	}
	run("SET GLOBAL max_connections = 10")
	s.leaving = append(s.leaving, func() { run("SET GLOBAL max_connections = 151") })
	hog := s.connect(t, testserver.User, testserver.User)
	for range 100 {
		taken := 0
		for {
			conn, err := hog.Conn(t.Context())
			if err != nil {
				break
			}
			taken++
			s.leaving = append(s.leaving, func() { _ = conn.Close() })
		}
		rows, err := admin.Query("SELECT id FROM information_schema.processlist WHERE user = '" + testserver.User + "' AND db <> '" + testserver.User + "'")
		if err != nil {
			t.Fatal(err)
		}
		var theirs []string
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				t.Fatal(err)
			}
			theirs = append(theirs, id)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		if theirs == nil && taken == 0 {
			return
		}
		for _, id := range theirs {
			run("KILL " + id)
		}
	}
	t.Fatal("the instances are as quick as the test")
}

// rival writes the rows of the writers in the opposite order.
func rival(t *testing.T, s *stack) {
	before := deadlocks(t, s)
	pool := s.connect(t, testserver.User, "")
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				id := int64(firstWritten) + rand.Int64N(writtenIDs/2)
				tx, err := pool.Begin()
				if err != nil {
					continue
				}
				_, err = tx.Exec("UPDATE "+s.table("addresses")+" SET address = ? WHERE user_id = ?", "rival", id)
				time.Sleep(3 * time.Millisecond)
				if err == nil {
					_, err = tx.Exec("UPDATE "+s.table("users")+" SET phone = ? WHERE id = ?", "rival", id)
				}
				if err != nil {
					_ = tx.Rollback() // it was the victim
					continue
				}
				_ = tx.Commit() // nobody reads it
			}
		})
	}
	s.leaving = append(s.leaving, func() {
		close(done)
		wg.Wait()
		if n := deadlocks(t, s) - before; n == 0 {
			t.Error("there was no deadlock")
		} else {
			t.Logf("%d deadlocks", n)
		}
	})
}

func deadlocks(t *testing.T, s *stack) (n int) {
	t.Helper()
	text := s.db.Admin("SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'INNODB_DEADLOCKS'")
	if len(text) != 1 {
		t.Fatalf("deadlocks: %v", text)
	}
	_, _ = fmt.Sscan(text[0], &n)
	return n
}

// connect returns a pool of somebody else's, past the proxy, which leave closes.
func (s *stack) connect(t *testing.T, user, database string) *sql.DB {
	t.Helper()
	pool, err := sql.Open("mysql", user+":"+testserver.Password+"@tcp("+s.db.Addr()+")/"+database)
	if err != nil {
		t.Fatal(err)
	}
	s.leaving = append(s.leaving, func() { _ = pool.Close() })
	return pool
}

// leave undoes what a fault has left in s.leaving, the last first.
func (s *stack) leave() {
	for i := len(s.leaving) - 1; i >= 0; i-- {
		s.leaving[i]()
	}
	s.leaving = nil
}

// TestFaults has each source fail in each way, under load, and looks at what clients get,
// what was stored, and what is left behind.
func TestFaults(t *testing.T) {
	db, redis := testserver.MariaDB(t), testserver.Redis(t)
	for _, source := range []struct {
		name   string
		faults []fault
	}{{"sql", sqlFaults()}, {"redis", redisFaults()}, {"members", memberFaults()}} {
		t.Run(source.name, func(t *testing.T) {
			r := newRig(t, newStack(t, db, redis))
			for _, f := range source.faults {
				t.Run(f.name, func(t *testing.T) { r.try(t, f) })
			}
			if source.name == "members" {
				t.Run("2,000 clients hang up early", func(t *testing.T) { hangUp(t, r) })
			}
			r.stopHanging(t, r.a)
			stop(t, r.b)
		})
	}
}

// stopHanging tells an instance to stop while requests wait for sources that hang: each of
// them is answered, and nothing keeps the process.
func (r *rig) stopHanging(t *testing.T, p *process) {
	t.Helper()
	r.s.db.Pause()
	r.s.redis.Pause()
	defer r.s.redis.Resume()
	defer r.s.db.Resume()
	var wg sync.WaitGroup
	for range 20 {
		id := r.next()
		wg.Go(func() {
			if a := r.get(p, id); a.status != 503 {
				t.Errorf("told to stop while its sources hang: %s", a.outcome())
			}
		})
	}
	time.Sleep(100 * time.Millisecond) // they are on their way
	began := time.Now()
	stop(t, p)
	wg.Wait()
	took := time.Since(began)
	t.Logf("told to stop while MariaDB and Redis hang: gone after %v", took)
	if took > requestTimeout+5*time.Second {
		t.Errorf("gone after %v", took)
	}
}

// hangUp has clients leave while their answer waits for the database.
func hangUp(t *testing.T, r *rig) {
	before := r.measure(t)
	refusals := map[string]float64{}
	for _, source := range []string{"sql", "members", "attributes"} {
		refusals[source] = r.a.metric(t, `source_requests_total{result="refused",source="`+source+`"}`)
	}
	r.s.toDB.delay(100 * time.Millisecond)
	u, err := url.Parse(r.a.url)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var wg sync.WaitGroup
	for range 2000 {
		id := r.next()
		wg.Go(func() {
			conn, err := net.Dial("tcp", u.Host)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			if _, err := fmt.Fprintf(conn, "GET /api/users/%d HTTP/1.1\r\nHost: x\r\n\r\n", id); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(rand.N(50 * time.Millisecond))
		})
	}
	wg.Wait()
	left := time.Now()
	r.s.toDB.heal()
	recovered := r.recovered(t, left)
	for _, source := range []string{"sql", "members", "attributes"} {
		if n := r.a.metric(t, `source_requests_total{result="refused",source="`+source+`"}`); n != refusals[source] {
			t.Errorf("%v calls of %s were refused: clients that leave are not a failure", n-refusals[source], source)
		}
	}
	r.settled(t, before, members.DefaultMaxConns) // so many wanted members at once
	t.Logf("they came and left within %v; normal after %v", left.Sub(began), recovered)
	row := fmt.Sprintf("| 2,000 clients hang up early | – | – | – | – | – | – | – | – | %v |\n", recovered.Round(10*time.Millisecond))
	if _, err := io.WriteString(r.table, row); err != nil {
		t.Error(err)
	}
}
