package page

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"pinion/bench/record"
)

// costs is what a ping may cost a peer, in µs.
func costs() map[string]float64 {
	return map[string]float64{
		"floor": 5.9, "engine": 6.6, "pinion": 7.0, "gnet": 7.1, "fasthttp": 8.9, "nginx": 8.5, "hertz": 9.9,
		"fiber": 9.3, "HAProxy": 9.1, "net/http": 13.3, "chi": 13.9, "gin": 14.1, "echo": 14.4,
	}
}

// synthetic makes up a run that has everything.
func synthetic() *record.Run {
	m := maker{rnd: rand.New(rand.NewPCG(1, 2))}
	started := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	m.run = &record.Run{
		Version: record.Version, Started: started, Ended: started.Add(18*time.Minute + 12*time.Second),
		Command: "make bench-peers", Revision: "v0.3.0-12-gabcdef0", Rounds: 5,
		Method: []string{"The server had CPU 0, the generators CPU 1.", "nginx and HAProxy answer pings only."},
		Host: record.Host{
			CPU: "AMD EPYC 7R13 Processor", CPUs: 2, Memory: 8 << 30, Virtual: "KVM", Kernel: "6.18.44", Governor: "none (no cpufreq)",
			Go: "go1.26.8 amd64", Load: "0.12", Descriptors: 20000, ServerCPUs: "0", LoadCPUs: "1",
			Mitigations: map[string]string{"meltdown": "Not affected", "l1tf": "Not affected", "spectre_v2": "Mitigation: Retpolines; IBPB: conditional"},
			Sysctls:     map[string]string{"net.core.somaxconn": "4096", "net.ipv4.tcp_rmem": "4096\t131072\t6291456"},
			Tools:       map[string]string{"wrk": "4.1.0", "gcc": "12.2.0"},
		},
		Generator: []record.Generator{
			{Name: "requests a second from one CPU", Want: "at least 80,000", Got: "91,200", OK: true},
			{Name: "p99.9 with a stop of 100 ms", Want: "95 to 110 ms", Got: "99.8 ms", OK: true},
		},
		Scenarios: []record.Scenario{
			{Name: "ping", Title: "Ping", About: "`GET /api/ping` in a closed loop over keep-alive connections.", Conns: []int{1, 64, 256, 1024}},
			{Name: "json", Title: "1 KiB of JSON", About: "`GET /json?id=N`, an order built and encoded for each request.", Conns: []int{64}},
			{Name: "users", Title: "20 users", About: "`GET /api/users?ids=` with 20 ids, all of them in memory.", Conns: []int{64}},
			{Name: "post", Title: "POST", About: "A body of 200 bytes, decoded into a struct.", Conns: []int{64}},
			{Name: "pipeline", Title: "Pipelined", About: "16 pings in one write.", Conns: []int{64}},
			{Name: "churn", Title: "Short connections", About: "10 requests a connection.", Conns: []int{64}},
			{Name: "close", Title: "One request a connection", About: "`Connection: close`.", Conns: []int{64}},
			{Name: "sleep", Title: "A handler that sleeps", About: "1 ms of sleep in the handler.", Conns: []int{64, 256}},
			{Name: "mix", Title: "Sleeping beside pings", About: "The sleeping route at a constant rate, while pings in a closed loop saturate the server.", Conns: []int{16}},
			{Name: "rate", Title: "Constant rate", About: "Pings at 70 % of the rate that fasthttp can answer.", Conns: []int{64}},
			{Name: "pulse", Title: "Pulses", About: "200 ms on, 800 ms off.", Conns: []int{64}},
			{Name: "jitter", Title: "Random gaps", About: "Exponential gaps between requests.", Conns: []int{64}},
			{Name: "idle", Title: "Idle connections", About: "Connections that have served one request.", Conns: []int{15000}},
			{Name: "loops", Title: "Two loops", About: "One loop and two, on both CPUs.", Conns: []int{64}},
			{Name: "allocations", Title: "Allocations", About: "Objects per request in the whole process.", Conns: []int{1}},
		},
	}
	m.peers()
	for round := range 5 {
		m.round(round)
	}
	for _, route := range []string{"/api/ping", "/api/users?ids=", "/api/users/{id}"} {
		none := 0.0
		m.run.Samples = append(m.run.Samples, record.Sample{Scenario: "allocations", Conns: 1, Peer: "pinion", Route: route, Requests: 100000, Seconds: 1, Allocations: &none})
	}
	return m.run
}

type maker struct {
	run *record.Run
	rnd *rand.Rand
}

func (m *maker) peers() {
	for _, name := range []string{"pinion", "engine", "fasthttp", "gnet", "fiber", "hertz", "net/http", "chi", "gin", "echo", "nginx", "HAProxy", "floor"} {
		p := record.Peer{Name: name, Version: "v1.2.3", Language: "Go", Setup: "as its documentation advises for production", SHA256: "0123456789abcdef0123456789abcdef", Answers: map[string]int{"/api/ping": 120}}
		if pings(name) {
			p.Language = "C"
		} else {
			p.Answers["/json"] = 1180
		}
		m.run.Peers = append(m.run.Peers, p)
	}
}

// pings tells whether a peer does nothing else.
func pings(peer string) bool { return slices.Contains([]string{"nginx", "HAProxy", "floor"}, peer) }

func (m *maker) round(round int) {
	for _, p := range m.run.Peers {
		name, ping := p.Name, costs()[p.Name]
		for _, n := range []int{1, 64, 256, 1024} {
			m.closed("ping", n, name, round, ping*(1+0.03*math.Log2(float64(n)/64)))
		}
		if name == "pinion" {
			m.closed("users", 64, name, round, 12)
			m.idle(name, round, 340)
		}
		if name == "pinion" || pings(name) {
			continue
		}
		m.closed("users", 64, name, round, ping*4)
		m.closed("json", 64, name, round, ping*1.4)
		m.closed("post", 64, name, round, ping*1.3)
		m.closed("pipeline", 64, name, round, ping*ping*ping/300)
		m.closed("churn", 64, name, round, ping*1.6)
		m.closed("close", 64, name, round, ping*4.5)
		m.closed("sleep", 64, name, round, ping*1.9)
		m.closed("sleep", 256, name, round, ping*1.7)
		m.open("rate", 64, name, round, 52000, ping*8, 0)
		m.open("pulse", 64, name, round, 20000, ping*9, 0)
		m.open("jitter", 64, name, round, 52000, ping*12, 0)
		m.open("mix", 16, name, round, 500, ping*150, 60000)
		m.idle(name, round, map[bool]float64{true: 280, false: ping * 1500}[name == "engine"])
	}
	m.closed("loops", 64, "engine 1 loop", round, 7)
	m.closed("loops", 64, "engine 2 loops", round, 7.4)
}

func (m *maker) about(x float64) float64 { return x * (0.97 + 0.06*m.rnd.Float64()) }

func (m *maker) closed(scenario string, conns int, peer string, round int, micros float64) {
	micros = m.about(micros)
	rate := min(1e6/micros, 105000) // the generator gives no more
	l := &record.Latency{P50: m.about(float64(conns) / rate * 1e6), P90: float64(conns) / rate * 1.6e6, P99: m.about(float64(conns) / rate * 3e6), Max: 20000}
	m.run.Samples = append(m.run.Samples, record.Sample{
		Scenario: scenario, Conns: conns, Peer: peer, Round: round, Requests: int64(rate), Seconds: 1,
		ServerCPU: micros * rate / 1e6, GeneratorCPU: min(1, rate/100000), RSS: int64(m.about(18 << 20)), Latency: l,
	})
}

func (m *maker) open(scenario string, conns int, peer string, round int, rate, p50 float64, beside int64) {
	l := &record.Latency{}
	shape := m.about(p50)
	for _, q := range []float64{0.1, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 1} {
		micros := shape * (1 + math.Log(1/(1-min(q, 0.99999)))) * m.about(1)
		if q > 0.998 {
			micros *= 4
		}
		l.Quantiles = append(l.Quantiles, record.Quantile{Part: q, Micros: micros})
		switch q {
		case 0.5:
			l.P50 = micros
		case 0.9:
			l.P90 = micros
		case 0.99:
			l.P99 = micros
		case 0.999:
			l.P999 = micros
		case 1:
			l.Max = micros
		}
	}
	m.run.Samples = append(m.run.Samples, record.Sample{
		Scenario: scenario, Conns: conns, Peer: peer, Round: round, Requests: int64(rate * 3), Seconds: 3, Rate: rate, OwnLag: m.about(40),
		ServerCPU: 1.8, GeneratorCPU: 3, RSS: 18 << 20, Latency: l, Beside: beside * 3,
	})
}

func (m *maker) idle(peer string, round int, each float64) {
	m.run.Samples = append(m.run.Samples, record.Sample{
		Scenario: "idle", Conns: 15000, Peer: peer, Round: round, Open: 15000, Requests: 15000, Seconds: 2,
		RSSBefore: 12 << 20, RSS: 12<<20 + int64(15000*m.about(each)),
	})
}
