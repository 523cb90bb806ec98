package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"pinion/affinity"
	"pinion/bench/measure"
	"pinion/bench/peers/work"
	"pinion/bench/record"
)

// Kind is how a scenario is measured.
type Kind int

const (
	// Closed is wrk: each connection sends when it has been answered.
	Closed Kind = iota
	// Open is the generator: requests are sent when they are due.
	Open
	// Idle holds connections that do nothing.
	Idle
	// Allocations counts the objects a request allocates, in a server that tells.
	Allocations
)

// Scenario is one kind of load.
type Scenario struct {
	record.Scenario
	Kind   Kind
	Method string // empty: GET
	Target string // of the requests, path and query
	Body   string
	// Peers are those that are measured, of those that have the route; nil: all.
	Peers []string
	// Quick is for runs of a few minutes.
	Quick bool

	Pipeline      int // requests in one write
	PerConnection int // requests, after which a connection is closed

	// Of the open loop.
	Shape       string        // constant, pulse or jitter
	Share       float64       // of the limit of fasthttp, as requests a second; 0: Rate
	Rate        float64       // requests a second
	Duration    time.Duration // 0: a second
	Beside      string        // target of closed-loop requests meanwhile, on BesideConns connections
	BesideConns int

	// Span is how many CPUs and loops a peer gets that is measured with several.
	Span map[string]int
}

// route returns which of the peers' routes is asked, as work names them.
func (sc *Scenario) route() string {
	switch sc.Name {
	case work.RouteJSON, work.RouteUsers, work.RoutePost, work.RouteSleep:
		return sc.Name
	default:
		return work.RoutePing
	}
}

// spanned returns the CPUs of a peer that is measured with n of them.
func spanned(c measure.CPUs, n int) affinity.Set {
	var s affinity.Set
	for _, of := range []affinity.Set{c.Server, c.Load} { // the server's own first
		for cpu := range of.All() {
			if s.Len() < n {
				s = s.Union(affinity.SetOf(cpu))
			}
		}
	}
	return s
}

// load returns the CPUs of the generator: those that no peer of the scenario has, if there
// are any. All peers of a scenario then have the same generator.
func (sc *Scenario) load(c measure.CPUs) affinity.Set {
	most := 0
	for _, n := range sc.Span {
		most = max(most, n)
	}
	if rest := c.Load.Difference(spanned(c, most)); !rest.Empty() {
		return rest
	}
	return c.Load
}

// Shares reports whether a peer of the scenario has to share a CPU with the generator.
func (sc *Scenario) Shares(c measure.CPUs) bool {
	for _, n := range sc.Span {
		if !spanned(c, n).Intersect(sc.load(c)).Empty() {
			return true
		}
	}
	return false
}

// Subjects returns what is measured under the scenario, of those that are there.
func (sc *Scenario) Subjects(all []Subject, c measure.CPUs) []Subject {
	var of []Subject
	for _, s := range all {
		if sc.Span == nil {
			if s.Can(sc.Name) && (sc.Peers == nil || slices.Contains(sc.Peers, s.Peer.Name)) {
				of = append(of, s)
			}
			continue
		}
		if s.Peer.Name != "engine" {
			continue
		}
		for name, n := range sc.Span {
			s.Name, s.CPUs, s.Args = name, spanned(c, n), []string{"-loops", strconv.Itoa(n)}
			of = append(of, s)
		}
		slices.SortFunc(of, func(a, b Subject) int { return a.CPUs.Len() - b.CPUs.Len() })
	}
	return of
}

// duration returns how long a measurement of the open loop takes.
func (sc *Scenario) duration() time.Duration {
	if sc.Duration > 0 {
		return sc.Duration
	}
	return time.Second
}

// Batch returns the target of a request for 20 users of a fixture.
func Batch(users string) (string, error) {
	store, err := work.Load(users)
	if err != nil {
		return "", err
	}
	const n = 20
	known := store.Users()
	if len(known) < n {
		return "", fmt.Errorf("%s: %d users, want at least %d", users, len(known), n)
	}
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = known[i*len(known)/n].ID // from all over it
	}
	e, err := work.NewUsers(store, ids)
	return e.Target, err
}

const (
	ping  = "/api/ping"
	sleep = "/sleep"
)

// All returns the scenarios, in the order of the report. batch is the target of a request
// for 20 users.
func All(batch string) ([]Scenario, error) {
	post, err := work.NewPost(17)
	if err != nil {
		return nil, err
	}
	one := func(name, title, about string, conns ...int) record.Scenario {
		return record.Scenario{Name: name, Title: title, About: about, Conns: conns}
	}
	// chi, gin and echo are net/http where only the transport counts. Where there are many
	// measurements, fiber goes by fasthttp and gin by net/http.
	few := []string{"pinion", "engine", "fasthttp", "gnet", "net/http", "nginx", "floor"}
	transports := []string{"pinion", "engine", "fasthttp", "gnet", "fiber", "hertz", "net/http", "gin", "nginx", "HAProxy", "floor"}
	blocking := []string{"engine", "fasthttp", "gnet", "fiber", "hertz", "net/http", "gin"}
	open := []string{"pinion", "engine", "fasthttp", "gnet", "net/http", "nginx"}
	return []Scenario{
		{
			Scenario: one("ping", "Ping", "`GET /api/ping`, answered with `{\"status\":\"ok\"}`: what it costs to be a server at all.", 64),
			Target:   ping, Quick: true,
		},
		{
			Scenario: one("ping", "Ping", "", 256),
			Target:   ping, Peers: transports,
		},
		{
			Scenario: one("ping", "Ping", "", 1, 1024),
			Target:   ping, Peers: few,
		},
		{
			Scenario: one("json", "1 KiB of JSON", "`GET /json?id=…`: an order with its items, built from the id and encoded for each request, by codec's writer in `engine` and by each framework's own encoder in the others.", 64),
			Target:   "/json?id=17", Quick: true,
		},
		{
			Scenario: one("users", "20 users from a cache", "`GET /api/users?ids=…` with 20 ids, all in memory: fragments made beforehand in `pinion` and `fasthttp+fragments`, structs in the others. `engine` encodes them for each request with codec, their attributes sorted beforehand; the others with their framework's encoder.", 64),
			Target:   batch, Quick: true,
		},
		{
			Scenario: one("post", "POST of 200 bytes", "`POST /json` with a body of 200 bytes, which is decoded into a struct; the answer is computed from it.", 64),
			Method:   post.Method, Target: post.Target, Body: string(post.Body),
		},
		{
			Scenario: one("pipeline", "16 requests in one write", "Pings, 16 at a time on each connection.", 64),
			Target:   ping, Peers: transports, Pipeline: 16, Quick: true,
		},
		{
			Scenario: one("churn", "10 requests per connection", "Pings; every tenth asks for the end of its connection, and the client opens another.", 64),
			Target:   ping, Peers: transports, PerConnection: 10, Quick: true,
		},
		{
			Scenario: one("close", "One request per connection", "Pings with `Connection: close`.", 64),
			Target:   ping, Peers: few, PerConnection: 1,
		},
		{
			Scenario: one("sleep", "A handler that blocks for 1 ms", "`GET /sleep`: the handler sleeps for 1 ms. `engine` calls `MayBlock` first, so the loop goes on with other connections.", 256),
			Target:   sleep, Peers: blocking, Quick: true,
		},
		{
			Scenario: one("sleep", "", "", 64),
			Target:   sleep, Peers: []string{"engine", "fasthttp"},
		},
		{
			Scenario: one("mix", "Blocking beside inline", "The same route, 500 times a second, while 64 other connections send pings as fast as they are answered. The latency is that of the blocking route.", 16),
			Kind:     Open, Target: sleep, Peers: []string{"engine", "fasthttp", "gnet", "net/http"}, Shape: "constant", Rate: 500, Duration: 2 * time.Second,
			Beside: ping, BesideConns: 64,
		},
		{
			Scenario: one("rate", "A constant rate", "Pings, evenly spaced, at the rate that takes fasthttp 70 % of its CPU, found anew before each round.", 256),
			Kind:     Open, Target: ping, Peers: open, Shape: "constant", Share: 0.7, Duration: 2 * time.Second, Quick: true,
		},
		{
			Scenario: one("jitter", "A rate with random gaps", "The same rate with exponentially distributed gaps, as of many clients that know nothing of each other.", 256),
			Kind:     Open, Target: ping, Peers: open, Shape: "jitter", Share: 0.7,
		},
		{
			Scenario: one("pulse", "Pulses", "The same rate for 200 ms, then nothing for 800 ms.", 256),
			Kind:     Open, Target: ping, Peers: open, Shape: "pulse", Share: 0.7, Duration: 2 * time.Second,
		},
		{
			Scenario: one("idle", "Idle connections", "As many connections as the limit of descriptors allows; each has been answered one ping and waits. Resident memory of the server, with a quarter of them and with all, as it stands half a second later.", 0),
			Kind:     Idle, Target: ping, Peers: transports,
		},
		{
			Scenario: one("loops", "Two loops", "Pings on one loop with one CPU, and on two loops with two.", 128),
			Target:   ping, Span: map[string]int{"engine 1 loop": 1, "engine 2 loops": 2},
		},
		{
			Scenario: one("allocations", "Allocations", "Objects allocated by the whole process, by its own count, for each request on routes that are answered inline.", 8),
			Kind:     Allocations, Target: ping, Peers: []string{"pinion"},
		},
	}, nil
}
