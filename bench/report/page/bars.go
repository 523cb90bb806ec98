package page

import (
	"math"

	"pinion/bench/record"
)

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
	// beside means that it is no bar, but a figure that the bar of that number is read with.
	// It is left out where it was not measured.
	beside bool
}

// bestOther is whichever other Go server spends the least.
const bestOther = "best other"

// figure is what a bar is about.
type figure struct {
	unit string                       // of the figure itself; a ratio has none
	get  func(*record.Sample) float64 // NaN where zero is a measurement and there is none
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
			return math.NaN()
		}
		return *s.Allocations
	}}

	var all []bar
	for _, to := range []bar{
		{number: 1, to: floor, limit: 1.12, goal: 1.05},
		{number: 2, to: fasthttp, limit: 0.87, goal: 0.75},
		{number: 3, to: "gnet", limit: 0.95, goal: 0.85},
		{number: 3, to: bestOther, limit: 0.95, goal: 0.85},
	} {
		for _, of := range []string{engine, product} {
			for _, conns := range []int{64, 256} {
				to.what, to.scenario, to.conns, to.of, to.figure = "CPU, ping", "ping", conns, of, cpu
				all = append(all, to)
			}
		}
	}
	return append(
		all,
		bar{number: 4, what: "CPU, 16 pipelined", scenario: "pipeline", of: engine, to: fasthttp, figure: cpu, limit: 0.70, goal: 0.45},
		bar{number: 5, what: "CPU, 10 requests a connection", scenario: "churn", of: engine, to: fasthttp, figure: cpu, limit: 0.80, goal: 0.50},
		bar{number: 6, what: "CPU, 1 KiB of JSON", scenario: "json", of: engine, to: "gin", figure: cpu, limit: 0.50, goal: 0.40},
		bar{number: 7, what: "CPU, 20 users", scenario: "users", of: product, to: fasthttp, figure: cpu, limit: 0.40, goal: 0.25},
		bar{number: 7, what: "both with JSON made beforehand", scenario: "users", of: product, to: fragments, figure: cpu, beside: true},
		bar{number: 8, what: "CPU, 1 ms of sleep", scenario: "sleep", conns: 256, of: engine, to: fasthttp, figure: cpu, limit: 1.10, goal: 1.00},
		bar{number: 9, what: "p99, 1 ms of sleep while pings saturate the loops", scenario: "mix", of: engine, figure: millis, limit: 5, goal: 2},
		bar{number: 10, what: "p99 at a constant rate", scenario: "rate", of: engine, to: fasthttp, figure: tail, limit: 0.60, goal: 0.40},
		bar{number: 11, what: "memory of an idle connection", scenario: "idle", of: engine, figure: memory, limit: 512, goal: 320},
		// No bar for the product, which holds what its engine does: a few megabytes of connections
		// are less than what its heap has to spare.
		bar{number: 11, what: "out of a heap with room to spare", scenario: "idle", of: product, figure: memory, beside: true},
		bar{number: 12, what: "objects a request, worst inline route", scenario: "allocations", of: product, figure: objects, limit: fewAllocations, goal: fewAllocations},
		bar{number: 13, what: "CPU, two loops against one", scenario: "loops", of: twoLoops, to: oneLoop, figure: cpu, limit: 1.10, goal: 1.00},
	)
}

// The peers of the scenario `loops`.
const (
	oneLoop  = engine + " 1 loop"
	twoLoops = engine + " 2 loops"
)
