package page

import (
	"math"
	"slices"

	"pinion/affinity"
	"pinion/bench/record"
)

// report is a run with what all parts of its page ask for.
type report struct {
	run        *record.Run
	raw        string   // link to the data
	order      []string // of peers
	serverCPUs int
	loadCPUs   int
	mostRounds int
	plots      map[string][]byte // drawn so far, by file name
}

func newReport(run *record.Run, raw string) *report {
	r := &report{
		run: run, raw: raw, plots: map[string][]byte{},
		serverCPUs: cpus(run.Host.ServerCPUs), loadCPUs: cpus(run.Host.LoadCPUs),
	}
	r.order = r.peers()
	rounds := map[record.Key]map[int]bool{} // samples of several routes can be of one round
	for i := range run.Samples {
		s := &run.Samples[i]
		if rounds[s.Key()] == nil {
			rounds[s.Key()] = map[int]bool{}
		}
		rounds[s.Key()][s.Round] = true
		r.mostRounds = max(r.mostRounds, len(rounds[s.Key()]))
	}
	return r
}

// cpus returns how many CPUs a list names, one where it says nothing.
func cpus(list string) int {
	set, err := affinity.ParseSet(list)
	if err != nil || set.Empty() {
		return 1
	}
	return set.Len()
}

// known drops what was not measured: zero, and what is no number.
func known(v []float64) []float64 {
	return slices.DeleteFunc(v, func(x float64) bool { return !(x > 0) || math.IsInf(x, 0) })
}

// of returns the spread of a figure over the rounds in which it was measured.
func (r *report) of(key record.Key, figure func(*record.Sample) float64) record.Spread {
	var v []float64
	for _, s := range r.run.Of(key) {
		v = append(v, figure(&s))
	}
	return record.SpreadOf(known(v))
}

// ratio returns the spread of the ratios of each round.
func (r *report) ratio(of, to record.Key, figure func(*record.Sample) float64) record.Spread {
	return record.SpreadOf(known(r.run.Ratios(of, to, figure)))
}

// p99 returns that of the latency in microseconds, 0 where it is not known.
func p99(s *record.Sample) float64 {
	if s.Latency == nil {
		return 0
	}
	return s.Latency.P99
}

// latency returns a figure of the latency.
func latency(of func(*record.Latency) float64) func(*record.Sample) float64 {
	return func(s *record.Sample) float64 {
		if s.Latency == nil {
			return 0
		}
		return of(s.Latency)
	}
}

// use returns CPU time as a part of the time of one CPU.
func use(cpu func(*record.Sample) float64) func(*record.Sample) float64 {
	return func(s *record.Sample) float64 {
		if s.Seconds == 0 {
			return 0
		}
		return cpu(s) / s.Seconds
	}
}

func serverUse(s *record.Sample) float64 {
	return use(func(s *record.Sample) float64 { return s.ServerCPU })(s)
}

func generatorUse(s *record.Sample) float64 {
	return use(func(s *record.Sample) float64 { return s.GeneratorCPU })(s)
}

// busy is the part of its CPUs from which on a program has nothing left to give.
const busy = 0.95

// limited reports whether the generator, and not the server, was what ended the rate: it
// had used up its CPUs while the server had not, or, in most rounds of an open loop, it was behind.
func (r *report) limited(key record.Key) bool {
	samples := r.run.Of(key)
	behind := 0
	for i := range samples {
		if samples[i].Behind {
			behind++
		}
	}
	if 2*behind > len(samples) { // the median may be one of those
		return true
	}
	// A generator that waits for a time by looking at the clock is always busy.
	if slices.ContainsFunc(samples, func(s record.Sample) bool { return s.Rate > 0 }) {
		return false
	}
	return r.of(key, generatorUse).Median >= busy*float64(r.loadCPUs) &&
		!(r.of(key, serverUse).Median >= busy*float64(r.serverCPUs))
}

// errors returns the sum over all rounds.
func (r *report) errors(key record.Key) record.Errors {
	var sum record.Errors
	for _, s := range r.run.Of(key) {
		if e := s.Errors; e != nil {
			sum.Status += e.Status
			sum.Connect += e.Connect
			sum.Read += e.Read
			sum.Write += e.Write
			sum.Timeout += e.Timeout
		}
	}
	return sum
}

// dagger marks an unsteady figure. Where no figure of the run has rounds enough to be
// steady the page says so once, at its top.
func (r *report) dagger(s record.Spread) string {
	if s.N > 0 && s.Unsteady() && r.mostRounds >= 3 {
		return " †"
	}
	return ""
}

// cpuDagger marks a CPU time per request that is unsteady, apart from what moved all peers
// alike.
func (r *report) cpuDagger(key record.Key) string {
	return r.dagger(record.SpreadOf(r.run.CPU(key)))
}

// conns returns the numbers of connections of a scenario, ascending. With peers given it
// returns those at which all of them were measured.
func (r *report) conns(scenario string, peers ...string) []int {
	var all []int
	for i := range r.run.Samples {
		if s := &r.run.Samples[i]; s.Scenario == scenario && !slices.Contains(all, s.Conns) {
			all = append(all, s.Conns)
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(all, func(n int) bool {
		return slices.ContainsFunc(peers, func(p string) bool {
			return len(r.run.Of(record.Key{Scenario: scenario, Conns: n, Peer: p})) == 0
		})
	})
}

// measured returns the peers that have samples, in the order of the page.
func (r *report) measured(scenario string, conns int) []string {
	return slices.DeleteFunc(slices.Clone(r.order), func(p string) bool {
		return len(r.run.Of(record.Key{Scenario: scenario, Conns: conns, Peer: p})) == 0
	})
}
