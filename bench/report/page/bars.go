package page

import "pinion/bench/record"

// bar is a figure that pinion is to reach. The limits are those of the design, which has 13
// of them; where one speaks of several loads, or holds for engine and product alike, it is
// several rows with the same number.
type bar struct {
	number int
	what   string

	scenario string
	conns    int    // 0: every number at which it was measured
	of       string // peer
	to       string // peer, bestOther, or empty: the figure itself

	figure figure
	limit  float64
	goal   float64
}

// bestOther is whichever other Go server spends the least.
const bestOther = "best other"

// figure is what a bar is about.
type figure struct {
	unit string // of the figure itself; a ratio has none
	get  func(*record.Sample) float64
	// worst means that the greatest of all samples counts, and that zero is a measurement.
	worst bool
	// latency means that a generator that was behind spoils the figure.
	latency bool
}

// fewAllocations is what counts as none: what a process does beside its requests allocates
// too, and is counted with them.
const fewAllocations = 0.01

func bars() []bar {
	cpu := figure{get: (*record.Sample).Micros}
	tail := figure{get: p99, latency: true}
	millis := figure{unit: "ms", get: func(s *record.Sample) float64 { return p99(s) / 1e3 }, latency: true}
	memory := figure{unit: "B", get: (*record.Sample).PerConnection}
	objects := figure{worst: true, get: func(s *record.Sample) float64 {
		if s.Allocations == nil {
			return -1
		}
		return *s.Allocations
	}}

	const ping = "CPU time, `GET /api/ping`"
	var all []bar
	for _, to := range []bar{
		{number: 1, to: floor, limit: 1.12, goal: 1.05},
		{number: 2, to: fasthttp, limit: 0.87, goal: 0.75},
		{number: 3, to: "gnet", limit: 0.95, goal: 0.85},
		{number: 3, to: bestOther, limit: 0.95, goal: 0.85},
	} {
		for _, of := range []string{engine, product} {
			for _, conns := range []int{64, 256} {
				to.what, to.scenario, to.conns, to.of, to.figure = ping, "ping", conns, of, cpu
				all = append(all, to)
			}
		}
	}
	return append(
		all,
		bar{4, "CPU time, 16 pipelined requests", "pipeline", 0, engine, fasthttp, cpu, 0.70, 0.45},
		bar{5, "CPU time, 10 requests a connection", "churn", 0, engine, fasthttp, cpu, 0.80, 0.50},
		bar{6, "CPU time, 1 KiB of JSON built per request", "json", 0, engine, "gin", cpu, 0.50, 0.40},
		bar{7, "CPU time, 20 users, all in L1", "users", 0, product, fasthttp, cpu, 0.40, 0.25},
		bar{8, "CPU time, 1 ms of sleep in the handler", "sleep", 256, engine, fasthttp, cpu, 1.10, 1.00},
		bar{9, "p99, 1 ms of sleep while pings saturate every loop", "mix", 0, engine, "", millis, 5, 2},
		bar{10, "p99, constant rate, 70 % of fasthttp's limit", "rate", 0, engine, fasthttp, tail, 0.60, 0.40},
		bar{11, "memory of an idle connection that has served a request", "idle", 0, engine, "", memory, 512, 320},
		bar{11, "memory of an idle connection that has served a request", "idle", 0, product, "", memory, 512, 320},
		bar{12, "allocations a request, worst inline route", "allocations", 0, product, "", objects, fewAllocations, fewAllocations},
		bar{13, "CPU time, two loops against one", "loops", 0, twoLoops, oneLoop, cpu, 1.10, 1.00},
	)
}

// The peers of the scenario `loops`.
const (
	oneLoop  = engine + " 1 loop"
	twoLoops = engine + " 2 loops"
)
