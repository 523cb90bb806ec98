package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// bars are the most that pinion may spend of the CPU time of the plain service, and of
// its SQL queries where it is cold and has as many connections as given.
func bars() (cpu map[string]float64, queries float64, at int) {
	return map[string]float64{"L1": 0.15, "L2": 0.4, "cold": 0.6}, 0.1, 256
}

// report writes the tables of the samples.
func report(w io.Writer, samples []sample, servers string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Host: %s; %s.\n\n", host(), servers)
	costs(&b, samples)
	b.WriteByte('\n')
	asks(&b, samples)
	_, err := io.WriteString(w, b.String())
	return err
}

// costs is the table of CPU time.
func costs(b *strings.Builder, samples []sample) {
	b.WriteString("| case | connections | plain, µs a request | pinion, µs a request | ratio | bar | verdict |\n|---|---|---|---|---|---|---|\n")
	limits, _, _ := bars()
	each(samples, func(what string, conns int, plain, pinion []sample) {
		micros := func(s sample) float64 { return s.micros }
		a, z := spreadOf(plain, micros), spreadOf(pinion, micros)
		ratio := spreadOf(pinion, func(s sample) float64 {
			i := slices.IndexFunc(plain, func(p sample) bool { return p.round == s.round })
			return s.micros / plain[i].micros
		})
		// The median of the rounds' ratios: both of a round saw the same host.
		fmt.Fprintf(b, "| %s | %d | %s | %s | %s | ≤ %.2f | %s |\n",
			what, conns, a.text("%.0f"), z.text("%.0f"), ratio.text("%.2f"), limits[what], verdict(ratio.median <= limits[what]))
	})
	_, limit, at := bars()
	each(samples, func(what string, conns int, plain, pinion []sample) {
		if what == "cold" && conns == at {
			queries := func(s sample) float64 { return s.sql }
			a, z := spreadOf(plain, queries).median, spreadOf(pinion, queries).median
			fmt.Fprintf(b, "| cold, SQL queries | %d | %.3f | %.3f | %.3f | ≤ %.2f | %s |\n",
				conns, a, z, z/a, limit, verdict(z/a <= limit))
		}
	})
}

// asks is the table of times and of what the sources were asked.
func asks(b *strings.Builder, samples []sample) {
	b.WriteString("| case | connections | service | p50, ms | p99, ms | SQL queries | Redis commands | member requests | requests | failed | degraded |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	each(samples, func(what string, conns int, plain, pinion []sample) {
		for _, s := range [][]sample{plain, pinion} {
			sum := sample{}
			for _, one := range s {
				sum.requests += one.requests
				sum.failed += one.failed
				sum.degraded += one.degraded
			}
			fmt.Fprintf(b, "| %s | %d | %s | %s | %s | %.2f | %.2f | %.2f | %d | %d | %d |\n", what, conns, s[0].service,
				spreadOf(s, func(s sample) float64 { return s.p50.Seconds() * 1e3 }).text("%.1f"),
				spreadOf(s, func(s sample) float64 { return s.p99.Seconds() * 1e3 }).text("%.1f"),
				spreadOf(s, func(s sample) float64 { return s.sql }).median,
				spreadOf(s, func(s sample) float64 { return s.redis }).median,
				spreadOf(s, func(s sample) float64 { return s.members }).median,
				sum.requests, sum.failed, sum.degraded)
		}
	})
}

// each calls f with the samples of both services for each row of a table.
func each(samples []sample, f func(what string, conns int, plain, pinion []sample)) {
	for _, what := range slices.Backward(cases()) {
		for _, conns := range connections() {
			var plain, pinion []sample
			for _, s := range samples {
				switch {
				case s.what != what || s.conns != conns:
				case s.service == "plain":
					plain = append(plain, s)
				default:
					pinion = append(pinion, s)
				}
			}
			f(what, conns, plain, pinion)
		}
	}
}

type spread struct{ median, least, most float64 }

func spreadOf(samples []sample, figure func(sample) float64) spread {
	v := make([]float64, 0, len(samples))
	for _, s := range samples {
		v = append(v, figure(s))
	}
	slices.Sort(v)
	n := len(v)
	return spread{(v[(n-1)/2] + v[n/2]) / 2, v[0], v[n-1]}
}

// text writes a figure as in "12 (11 to 14)".
func (s spread) text(format string) string {
	return fmt.Sprintf(format+" ("+format+" to "+format+")", s.median, s.least, s.most)
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "**missed**"
}

// host describes the machine.
func host() string {
	cpu := regexp.MustCompile(`(?m)^model name\s*:\s*(.*)$`).FindSubmatch(read("/proc/cpuinfo"))
	if cpu == nil {
		cpu = [][]byte{nil, []byte(runtime.GOARCH)}
	}
	count := len(regexp.MustCompile(`(?m)^processor\s*:`).FindAll(read("/proc/cpuinfo"), -1))
	return fmt.Sprintf("%d CPUs (%s), Linux %s, %s, load average %s", count, cpu[1],
		strings.TrimSpace(string(read("/proc/sys/kernel/osrelease"))), runtime.Version(),
		strings.Join(strings.Fields(string(read("/proc/loadavg")))[:1], ""))
}

func read(path string) []byte {
	text, _ := os.ReadFile(path) // a description may lack a part
	return text
}
