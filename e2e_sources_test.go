package main

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"pinion/internal/testserver"
	"pinion/users/members/service"
)

// TestSources is the whole story on servers: two instances read and write, and each
// answers what the other has written.
func TestSources(t *testing.T) {
	redis := testserver.Redis(t)
	for name, start := range map[string]func(testing.TB, ...string) *testserver.Server{
		"mariadb": testserver.MariaDB, "postgres": testserver.Postgres,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStack(t, start(t), redis)
			s.ask(t, "FLUSHALL")
			a := s.serve(t, "-demo", "300")
			b := s.serve(t, "-demo", "300")
			a.coherent(t, 1)
			b.coherent(t, 1)
			if strings.Count(a.stderr.String()+b.stderr.String(), "users made up") != 1 {
				t.Errorf("one of them has to make users up:\n%s%s", a.stderr, b.stderr)
			}
			c := newClient()
			readAll(t, s, c, a, b)
			writeAll(t, c, a, b)
			createTwice(t, c, a, b)
			remove(t, c, a, b)
			for _, p := range []*process{a, b} {
				watched(t, p)
			}
			c.close()
			stop(t, a)
			stop(t, b)
		})
	}
}

// readAll reads every user through both, and expects the same, whole.
func readAll(t *testing.T, s *stack, c *client, a, b *process) {
	t.Helper()
	var ids []string
	for id := range 300 {
		ids = append(ids, fmt.Sprint(id+1))
	}
	body := `{"ids":[` + strings.Join(ids, ",") + `,999999]}`
	var first string
	for _, p := range []*process{a, b, a} {
		got := c.send("POST", p.url+"/api/users/lookup", body)
		var batch struct {
			Users    []person
			Missing  []int64
			Degraded []string
		}
		if err := json.Unmarshal([]byte(got.body), &batch); err != nil || got.status != 200 {
			t.Fatalf("%v: %d %s", err, got.status, got.body)
		}
		if len(batch.Users) != 300 || len(batch.Missing) != 1 || batch.Degraded != nil {
			t.Fatalf("%d users, missing %v, degraded %v", len(batch.Users), batch.Missing, batch.Degraded)
		}
		with := 0
		for i, u := range batch.Users {
			if member := u.Member != nil; u.ID != int64(i+1) || member != (u.ID%2 == 1) || member && u.Member.Points != u.ID {
				t.Errorf("user %d: %+v", i+1, u)
			}
			if len(u.Attributes) > 0 {
				with++
			}
		}
		if with < 10 {
			t.Errorf("%d of 300 users have attributes", with)
		}
		if first == "" {
			first = got.body
			// What was read goes to the shared cache after the answer.
			for end := time.Now().Add(10 * time.Second); s.ask(t, "EXISTS user:frag:300") == "0"; {
				if time.Now().After(end) {
					t.Fatal("what was read does not come to the shared cache")
				}
				time.Sleep(5 * time.Millisecond)
			}
		} else if got.body != first {
			t.Error("two reads of the same differ")
		}
	}
	if b.metric(t, `cache_requests_total{layer="l2",result="hit"}`) == 0 {
		t.Error("the second instance found nothing in the shared cache")
	}
	for path, want := range map[string]string{
		"/api/users/active?limit=5": `"users":[{"id":`, "/api/users/7/address": `"address":`, "/ready": "ok", "/health": "ok",
	} {
		if got := c.send("GET", a.url+path, ""); got.status != 200 || !strings.Contains(got.body, want) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

// writeAll writes through one, reads through the other, and changes places.
func writeAll(t *testing.T, c *client, a, b *process) {
	t.Helper()
	for n := range 20 {
		value := fmt.Sprintf("value %d", n)
		written := c.send("PATCH", a.url+"/api/users/7", `{"name":"`+value+`","address":"`+value+`","attributes":{"v":"`+value+`","n":"1"}}`)
		if u := written.person(); written.status != 200 || u.Name != value || u.Attributes["v"] != value || u.Degraded != nil {
			t.Fatalf("write: %d %s", written.status, written.body)
		}
		if own := c.send("GET", a.url+"/api/users/7", ""); own.body != written.body {
			t.Errorf("the same instance answers %s, want %s", own.body, written.body)
		}
		took := eventually(t, 5*time.Second, "the other instance answers what was written", func() bool {
			return c.send("GET", b.url+"/api/users/7", "").body == written.body
		})
		if took > 100*time.Millisecond {
			t.Logf("after %v", took) // TestConsistency judges
		}
		if home := c.send("GET", b.url+"/api/users/7/address", ""); !strings.Contains(home.body, value) {
			t.Errorf("address: %s", home.body)
		}
		a, b = b, a
	}
}

// createTwice sends the same create to both, and wants one user.
func createTwice(t *testing.T, c *client, a, b *process) {
	t.Helper()
	const anew = `{"name":"Ana","email":"ana@example.com","attributes":{"k":"v"}}`
	first := c.send("POST", a.url+"/api/users", anew, "Idempotency-Key: once")
	again := c.send("POST", b.url+"/api/users", anew, "Idempotency-Key: once")
	if first.status != 201 || first.person().Attributes["k"] != "v" || again.status != 201 ||
		first.location != again.location || first.body != again.body {
		t.Errorf("created %d %s %s\nagain %d %s %s", first.status, first.location, first.body, again.status, again.location, again.body)
	}
	if other := c.send("POST", b.url+"/api/users", strings.Replace(anew, "Ana", "Eva", 1), "Idempotency-Key: once"); other.status != 422 {
		t.Errorf("the same key for somebody else: %d %s", other.status, other.body)
	}
	if without := c.send("POST", b.url+"/api/users", anew); without.status != 201 || without.location == first.location {
		t.Errorf("without a key: %d %s", without.status, without.location)
	}
}

// remove deletes through one what the other has cached.
func remove(t *testing.T, c *client, a, b *process) {
	t.Helper()
	if got := c.send("GET", b.url+"/api/users/9", ""); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if got := c.send("DELETE", a.url+"/api/users/9", ""); got.status != 204 {
		t.Fatalf("delete: %d %s", got.status, got.body)
	}
	if got := c.send("GET", a.url+"/api/users/9", ""); got.status != 404 {
		t.Errorf("the same instance: %d", got.status)
	}
	eventually(t, 5*time.Second, "the user is gone", func() bool { return c.send("GET", b.url+"/api/users/9", "").status == 404 })
	if got := c.send("DELETE", b.url+"/api/users/9", ""); got.status != 404 {
		t.Errorf("a second delete: %d", got.status)
	}
}

// watched looks for what an operator needs to see.
func watched(t *testing.T, p *process) {
	t.Helper()
	for _, source := range []string{"sql", "attributes", "members", "l2"} {
		if v := p.metric(t, `source_breaker_state{source="`+source+`"}`); v != 0 {
			t.Errorf("breaker of %s: %v", source, v)
		}
		if v := p.metric(t, `source_requests_total{result="ok",source="`+source+`"}`); v == 0 {
			t.Errorf("%s was not asked", source)
		}
	}
	for _, name := range []string{
		`cache_requests_total{layer="l1",result="hit"}`, `cache_fills_total{layer="l2",result="stored"}`, "l1_staleness_seconds_count",
	} {
		if p.metric(t, name) == 0 {
			t.Errorf("%s is 0", name)
		}
	}
	if status, body := do(t, "GET", p.admin+"/ready", ""); status != 200 {
		t.Errorf("/ready: %d %s", status, body)
	}
}

// TestWrongSources: names that cannot be right are told before anything is started, and
// never with a password.
func TestWrongSources(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-db", "mysql://u:hush@h"}, "-db"},
		{[]string{"-db", "mysql://u:hush@h:3306/name?what=1"}, "-db"},
		{[]string{"-db", "mysql://u:hu@sh@h:3306/"}, "-db"},
		{[]string{"-db", "postgres://u:hush@/"}, "-db"},
		{[]string{"-db", "postgres://u:hush@h:x/name"}, "-db"},
		{[]string{"-db", "mysqlx://u:hush@h/name"}, "-db"},
		{[]string{"-redis", "http://u:hush@h"}, "-redis"},
		{[]string{"-redis", "redis://u:hush@h:6379/x"}, "-redis"},
		{[]string{"-redis", "redis://u:hush@h:99999999"}, "-redis"},
		{[]string{"-redis", "redis://:hush@"}, "-redis"},
		{[]string{"-members", "ftp://u:hush@h"}, "-members"},
		{[]string{"-members", "http://u:hush@h/?x#y"}, "-members"},
		{[]string{"-members", "http://"}, "-members"},
		{[]string{"-db-conns", "-1"}, "-db-conns"},
		{[]string{"-redis-timeout", "0"}, "-redis-timeout"},
	} {
		refuses(t, 2, c.want, c.args...)
	}
}

// refuses runs the server and expects one line with what is wrong, and no password.
func refuses(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	cmd := command(t, append(args, "-log-level", "error")...)
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("%v: %v, want exit status %d", args, err, code)
	}
	if text := string(out); strings.Count(text, "\n") != 1 || !strings.Contains(text, want) {
		t.Errorf("%v: want one line with %q, got:\n%s", args, want, text)
	}
	for _, piece := range []string{"hush", "hu@sh", "sh@h"} {
		if strings.Contains(string(out), piece) {
			t.Errorf("%v: it shows the password: %s", args, out)
		}
	}
}

// TestSourcesAtStart: without its database an instance does not start. It starts without
// the others, and uses them as soon as they are there.
func TestSourcesAtStart(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := ln.Addr().String()
	_ = ln.Close() // nobody listens here from now on
	for _, scheme := range []string{"mysql", "postgres"} {
		dsn := scheme + "://u:hush@" + nobody + "/name"
		refuses(t, 1, nobody, "-db", dsn, "-addr", "127.0.0.1:0", "-admin", "")
	}

	s := newStack(t, testserver.MariaDB(t), testserver.Redis(t))
	s.dsn = strings.Replace(s.dsn, testserver.Password, "wrong", 1)
	refuses(t, 1, "Access denied", append(s.flags(), "-addr", "127.0.0.1:0", "-admin", "")...)
	s.dsn = strings.Replace(s.dsn, "wrong", testserver.Password, 1)
	refuses(t, 1, "WRONGPASS", append(s.flags(), "-redis", "redis://u:hush@"+s.redis.Addr(), "-addr", "127.0.0.1:0", "-admin", "")...)
	// Users whose attributes cannot be stored are not made up.
	refuses(t, 1, "make users up", append(s.flags(), "-demo", "50", "-redis", "redis://"+nobody, "-addr", "127.0.0.1:0", "-admin", "")...)
	s.serve(t, "-demo", "50").kill() // now they are

	s.toRedis.Stop()
	s.members.set(service.Knobs{FailRatio: 1})
	p := s.serve(t, "-demo", "50")
	c := newClient()
	defer c.close()
	if got := c.send("GET", p.url+"/api/users/1", ""); got.outcome() != "200 without attributes and member" {
		t.Errorf("%s: %s", got.outcome(), got.body)
	}
	if got := c.send("PATCH", p.url+"/api/users/2", `{"name":"x"}`); got.status != 200 {
		t.Errorf("a write: %d %s", got.status, got.body)
	}
	if got := c.send("PATCH", p.url+"/api/users/2", `{"attributes":{"k":"v"}}`); got.status != 503 || got.retryAfter == "" {
		t.Errorf("a write of attributes: %d %q %s", got.status, got.retryAfter, got.body)
	}
	s.toRedis.accept()
	s.members.set(service.Knobs{})
	p.coherent(t, 1)
	eventually(t, 5*time.Second, "users are whole", func() bool { return c.send("GET", p.url+"/api/users/1", "").outcome() == "200" })
	stop(t, p)
}
