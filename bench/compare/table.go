package main

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"
)

const (
	// fewest pairs from which an interval with the confidence follows at all.
	fewest = 8
	// confidence of each interval: of the three in a table all hold with 95 %, as a table
	// should that is looked at for any change at all.
	confidence = 1 - 0.05/3
	// slight is what no interval of so few pairs can tell from a host that moves.
	slight = 0.01
)

// interval returns the median of ratios, and where the true one lies.
func interval(ratios []float64) (median, low, high float64) {
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(ratios, &benchmath.DefaultThresholds), confidence)
	return s.Center, s.Lo, s.Hi
}

// verdict puts an interval into words.
func verdict(median, low, high float64) string {
	switch {
	case math.Abs(median-1) < slight:
		return "less than 1 % apart"
	case high < 1:
		return fmt.Sprintf("faster by %.1f %%", 100*(1-median))
	case low > 1:
		return fmt.Sprintf("SLOWER by %.1f %%", 100*(median-1))
	default:
		return "no difference shown"
	}
}

// table prints what all pairs showed.
func table(w io.Writer, ref string, outcomes []outcome) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "CPU per request\t%s\tthis tree\tratio\t98.3 %% interval\t\n", ref)
	for i := range outcomes {
		out := &outcomes[i]
		if len(out.after) < fewest {
			fmt.Fprintf(t, "%s, %d connections\t\t\t\t\t  %d pairs are too few\n", out.Name, out.Conns[0], len(out.after))
			continue
		}
		before, after := out.medians()
		median, low, high := interval(out.ratios())
		fmt.Fprintf(t, "%s, %d connections\t%.2f µs\t%.2f µs\t%.3f\t%.3f to %.3f\t  %s\n",
			out.Name, out.Conns[0], before, after, median, low, high, verdict(median, low, high))
	}
	_ = t.Flush() // nobody waits for it
}
