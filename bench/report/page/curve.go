package page

import (
	"math"
	"slices"

	"pinion/bench/record"
	"pinion/bench/report/chart"
)

// fewest is how many requests must have been slower than a percentile for it to be drawn:
// with fewer it is the luck of single requests.
const fewest = 10

// odds of a part are one slow request in how many: 10 for 90 %, 1,000 for 99.9 %. They
// stretch the upper percentiles on a log axis.
func odds(part float64) float64 { return 1 / (1 - part) }

// parts are the percentiles of a curve, by their odds.
func parts() []float64 {
	all := []float64{2}
	for decade := 1.0; decade <= 1e5; decade *= 10 {
		for _, m := range []float64{1, 1.5, 2, 3, 5, 7} {
			if o := m * decade; o > 2 {
				all = append(all, o)
			}
		}
	}
	return all
}

// curve returns latency over percentiles: X is the odds, Y is µs, the median of the rounds
// that have it, where at least half of them do.
func curve(samples []record.Sample) []chart.Point {
	var points []chart.Point
	for _, o := range parts() {
		var v []float64
		for i := range samples {
			if y := latencyAt(&samples[i], o); y > 0 {
				v = append(v, y)
			}
		}
		if len(v) > 0 && 2*len(v) >= len(samples) {
			points = append(points, chart.Point{X: o, Y: record.SpreadOf(v).Median})
		}
	}
	return points
}

// latencyAt returns the latency at the odds of a percentile, between the two next to it
// that are known by a straight line on log scales. It is 0 where it is not known.
func latencyAt(s *record.Sample, o float64) float64 {
	if s.Latency == nil || float64(s.Requests)/o < fewest {
		return 0
	}
	known := quantiles(s.Latency)
	i := slices.IndexFunc(known, func(q record.Quantile) bool { return odds(q.Part) >= o*(1-1e-9) })
	switch {
	case i < 0:
		return 0
	case math.Abs(odds(known[i].Part)/o-1) < 1e-6:
		return known[i].Micros
	case i == 0:
		return 0
	}
	a, b := known[i-1], known[i]
	from, to := math.Log(odds(a.Part)), math.Log(odds(b.Part))
	if from == to {
		return b.Micros
	}
	along := (math.Log(o) - from) / (to - from)
	return math.Exp(math.Log(a.Micros) + along*(math.Log(b.Micros)-math.Log(a.Micros)))
}

// quantiles returns what is known of a distribution, ascending and without its maximum.
func quantiles(l *record.Latency) []record.Quantile {
	all := slices.Clone(l.Quantiles)
	if len(all) == 0 {
		all = []record.Quantile{{Part: 0.5, Micros: l.P50}, {Part: 0.9, Micros: l.P90}, {Part: 0.99, Micros: l.P99}, {Part: 0.999, Micros: l.P999}}
	}
	return slices.DeleteFunc(all, func(q record.Quantile) bool { return !(q.Part < 1) || !(q.Micros > 0) || !finite(q.Micros) })
}

// percentileTicks names the places on the axis of percentiles.
func percentileTicks() []chart.Tick {
	return []chart.Tick{
		{At: 2, Name: "50 %"},
		{At: 4, Name: "75 %"},
		{At: 10, Name: "90 %"},
		{At: 20, Name: "95 %"},
		{At: 100, Name: "99 %"},
		{At: 1e3, Name: "99.9 %"},
		{At: 1e4, Name: "99.99 %"},
		{At: 1e5, Name: "99.999 %"},
	}
}
