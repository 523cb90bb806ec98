package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"pinion/internal/testserver"
	"pinion/users"
	"pinion/users/members/service"
)

// stack is what instances are run on: real servers and a member service, each behind a
// proxy that can be told to misbehave.
type stack struct {
	db, redis *testserver.Server
	members   *memberHost
	dsn       string // of a database of its own, past the proxy

	toDB, toRedis, toMembers *proxy

	leaving []func() // what a fault has to undo
}

func newStack(t *testing.T, db *testserver.Server, redis *testserver.Server) *stack {
	t.Helper()
	toxics.Register("garble", new(garble))
	toxics.Register("late", new(late))
	m := newMemberHost(t)
	return &stack{
		db: db, redis: redis, members: m, dsn: db.Database(),
		toDB: newProxy(t, db.Addr()), toRedis: newProxy(t, redis.Addr()), toMembers: newProxy(t, m.addr),
	}
}

// flags make an instance use the sources through the proxies.
func (s *stack) flags() []string {
	return []string{
		"-db", strings.Replace(s.dsn, s.db.Addr(), s.toDB.Listen, 1),
		"-redis", "redis://" + s.toRedis.Listen, "-members", "http://" + s.toMembers.Listen,
	}
}

// serve starts an instance that lives as long as the test, and waits until it serves.
func (s *stack) serve(t *testing.T, args ...string) *process {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append(append([]string{"-addr", "127.0.0.1:0", "-admin", "127.0.0.1:0"}, s.flags()...), args...)...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir}
	p := launch(t, cmd)
	p.admin = "http://" + p.stderr.wait(t, `msg="private port open".* addr=(\S+)`)
	p.url = "http://" + p.stderr.wait(t, `msg=serving.* addr=(\S+)`)
	return p
}

// coherent waits until the instance uses the shared cache, for the nth time.
func (p *process) coherent(t *testing.T, n int) {
	t.Helper()
	p.stderr.wait(t, fmt.Sprintf(`(?s)(msg="the shared cache is in use".*){%d}`, n))
}

// turns is how often the instance has begun to use the shared cache.
func (p *process) turns() int {
	return strings.Count(p.stderr.String(), `msg="the shared cache is in use"`)
}

// table names a table of the stack's database for the administrator.
func (s *stack) table(name string) string {
	u, err := url.Parse(s.dsn)
	if err != nil {
		return err.Error()
	}
	return strings.TrimPrefix(u.Path, "/") + "." + name
}

// proxy stands before a source.
type proxy struct {
	*toxiproxy.Proxy
	t *testing.T

	intime func() // ends what delay began; nil: nothing is late
}

func newProxy(t *testing.T, upstream string) *proxy {
	t.Helper()
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	p := &proxy{Proxy: toxiproxy.NewProxy(api, upstream, "127.0.0.1:0", upstream), t: t}
	p.accept()
	t.Cleanup(p.Stop)
	return p
}

// accept ends what Stop began: that all are refused, and nobody is connected.
func (p *proxy) accept() {
	p.t.Helper()
	if err := p.Start(); err != nil {
		p.t.Fatal(err)
	}
}

// spoil does something to what the source answers.
func (p *proxy) spoil(kind, attributes string) {
	p.t.Helper()
	text := fmt.Sprintf(`{"type":%q,"name":%q,"stream":"downstream","attributes":%s}`, kind, kind+attributes, attributes)
	if _, err := p.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
		p.t.Fatal(err)
	}
}

// heal ends what spoil and delay began. What is late is not removed, but late no more: to
// remove it, toxiproxy waits seconds for each connection that has ended.
func (p *proxy) heal() {
	if p.intime != nil {
		p.intime()
		p.intime = nil
		return
	}
	p.Toxics.ResetToxics(context.Background())
}

// delay has the source answer later.
func (p *proxy) delay(by time.Duration) {
	p.t.Helper()
	key := rand.Int64N(1 << 50)
	healed := make(chan struct{})
	lates.Store(key, healed)
	p.intime = func() { close(healed) }
	p.spoil("late", fmt.Sprintf(`{"ms":%d,"key":%d}`, by.Milliseconds(), key))
}

// lates are the channels of the late toxics, by key: toxiproxy makes toxics from JSON.
var lates sync.Map

// late is a toxic that delays what passes until its channel is closed.
type late struct {
	MS  int64 `json:"ms"`
	Key int64 `json:"key"`
}

// GetBufferSize implements toxics.BufferedToxic: what is behind is not later than that.
func (*late) GetBufferSize() int { return 1024 }

// Pipe implements toxics.Toxic.
func (l *late) Pipe(stub *toxics.ToxicStub) {
	value, _ := lates.Load(l.Key)
	healed := value.(chan struct{})
	for {
		var c *stream.StreamChunk
		select {
		case <-stub.Interrupt:
			return
		case c = <-stub.Input:
		}
		if c == nil {
			stub.Close()
			return
		}
		select {
		case <-time.After(time.Until(c.Timestamp.Add(time.Duration(l.MS) * time.Millisecond))):
		case <-healed:
		}
		select {
		case stub.Output <- c:
		case <-stub.Interrupt: // nobody reads
			return
		}
	}
}

// garble is a toxic that makes all bytes the same, which is no answer of anybody.
type garble struct{}

// Pipe implements toxics.Toxic.
func (garble) Pipe(stub *toxics.ToxicStub) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case c := <-stub.Input:
			if c == nil {
				stub.Close()
				return
			}
			stub.Output <- &stream.StreamChunk{Data: bytes.Repeat([]byte("Z"), len(c.Data)), Timestamp: c.Timestamp}
		}
	}
}

// memberHost is a member service that can be restarted: odd ids are members.
type memberHost struct {
	t      *testing.T
	addr   string
	server *service.Server
	served chan struct{} // closed when it no longer serves
}

func newMemberHost(t *testing.T) *memberHost {
	t.Helper()
	m := &memberHost{t: t, addr: "127.0.0.1:0"}
	m.start()
	t.Cleanup(m.stop)
	return m
}

func (m *memberHost) start() {
	m.t.Helper()
	ln, err := net.Listen("tcp", m.addr)
	if err != nil {
		m.t.Fatal(err)
	}
	m.addr, m.served = ln.Addr().String(), make(chan struct{})
	m.server = service.New(func(id int64) (users.Member, bool) {
		return users.Member{Level: "gold", Points: id}, id%2 == 1
	})
	go func(s *service.Server, served chan<- struct{}) {
		defer close(served)
		_ = s.Serve(ln) // until it is told to stop
	}(m.server, m.served)
}

func (m *memberHost) stop() {
	if m.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = m.server.Shutdown(ctx) // one who holds a connection open for longer is cut off below
	<-m.served
	m.server = nil
}

func (m *memberHost) set(k service.Knobs) {
	m.t.Helper()
	if err := m.server.SetKnobs(k); err != nil {
		m.t.Fatal(err)
	}
}

// answer is what a client got.
type answer struct {
	status     int
	body       string
	retryAfter string
	location   string
	sent       time.Time
	took       time.Duration
	err        error
}

// client sends requests from many goroutines.
type client struct{ http http.Client }

func newClient() *client {
	return &client{http.Client{
		Timeout:   patience,
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 0},
	}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

func (c *client) send(method, url, body string, headers ...string) (a answer) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	if body != "" {
		headers = append(headers, jsonType)
	}
	if method != "GET" {
		headers = append(headers, bearer)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	req.Close = req.Header.Get("Connection") == "close"
	a.sent = time.Now()
	defer func() { a.took = time.Since(a.sent) }()
	resp, err := c.http.Do(req)
	if err != nil {
		a.err = err
		return a
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	a.status, a.body, a.err = resp.StatusCode, string(text), err
	a.retryAfter, a.location = resp.Header.Get("Retry-After"), resp.Header.Get("Location")
	return a
}

// person is a user as a client reads it.
type person struct {
	ID         int64
	Name       string
	Attributes map[string]string
	Member     *struct{ Points int64 }
	Degraded   []string
}

func (a answer) person() (p person) {
	_ = json.Unmarshal([]byte(a.body), &p) // else it is nobody
	return p
}

// outcome is the answer in a few words, as the table of faults has them.
func (a answer) outcome() string {
	switch {
	case a.err != nil:
		return a.err.Error()
	case a.status >= 400 && strings.Contains(a.body, "not known whether"):
		return fmt.Sprintf("%d unknown", a.status)
	case a.status >= 400:
		return strconv.Itoa(a.status)
	}
	text := strconv.Itoa(a.status)
	var without []string
	for _, d := range a.person().Degraded {
		if d == "stale" {
			text += " stale"
		} else {
			without = append(without, d)
		}
	}
	if without != nil {
		text += " without " + strings.Join(without, " and ")
	}
	return text
}

// metric is the sum of the series of the private port that begin with name.
func (p *process) metric(t *testing.T, name string) (sum float64) {
	t.Helper()
	_, text := do(t, "GET", p.admin+"/metrics", "")
	found := false
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || !strings.HasPrefix(rest, "{") && !strings.HasPrefix(rest, " ") && !strings.HasSuffix(name, "}") {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		sum, found = sum+v, true
	}
	if !found {
		t.Fatalf("there is no %s on /metrics", name)
	}
	return sum
}

// ask sends one command to Redis, past the proxy, and returns its reply.
func (s *stack) ask(t *testing.T, command string) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", s.redis.Addr(), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second)) // a socket takes one
	r := bufio.NewReader(conn)
	if _, err = io.WriteString(conn, command+"\r\n"); err != nil {
		t.Fatal(err)
	}
	line, err := r.ReadString('\n')
	if err != nil || line[0] == '-' {
		t.Fatalf("%s: %q, %v", command, line, err)
	}
	line = strings.TrimSpace(line)
	if line[0] != '$' {
		return line[1:]
	}
	n, _ := strconv.Atoi(line[1:]) // -1 is nil
	bulk := make([]byte, max(n, 0))
	if _, err := io.ReadFull(r, bulk); err != nil {
		t.Fatal(err)
	}
	return string(bulk)
}

// eventually waits until it holds, and returns how long that took.
func eventually(t *testing.T, limit time.Duration, what string, holds func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > limit {
			t.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(began)
}
