package main

import (
	"strings"
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	var samples []sample
	for _, what := range cases() {
		for _, conns := range connections() {
			for round := range 3 {
				// The plain service costs 100, 200, 300; pinion a tenth of that.
				micros := float64(100 * (round + 1))
				samples = append(samples,
					sample{what: what, conns: conns, round: round, service: "plain", requests: 10, micros: micros, sql: 1, p50: time.Millisecond},
					sample{what: what, conns: conns, round: round, service: "pinion", requests: 10, micros: micros / 10, sql: 0.25, failed: 1, degraded: 2})
			}
		}
	}
	var b strings.Builder
	if err := report(&b, samples, "MariaDB 1, Redis 2"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"; MariaDB 1, Redis 2.\n",
		"| L1 | 64 | 200 (100 to 300) | 20 (10 to 30) | 0.10 (0.10 to 0.10) | ≤ 0.15 | met |\n",
		"| cold, SQL queries | 256 | 1.000 | 0.250 | 0.250 | ≤ 0.10 | **missed** |\n",
		"| cold | 256 | plain | 1.0 (1.0 to 1.0) | 0.0 (0.0 to 0.0) | 1.00 | 0.00 | 0.00 | 30 | 0 | 0 |\n",
		"| cold | 256 | pinion | 0.0 (0.0 to 0.0) | 0.0 (0.0 to 0.0) | 0.25 | 0.00 | 0.00 | 30 | 3 | 6 |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		micros []float64
		want   spread
	}{
		{[]float64{3}, spread{3, 3, 3}},
		{[]float64{4, 1}, spread{2.5, 1, 4}},
		{[]float64{9, 1, 2}, spread{2, 1, 9}},
	} {
		var samples []sample
		for _, v := range c.micros {
			samples = append(samples, sample{micros: v})
		}
		if got := spreadOf(samples, func(s sample) float64 { return s.micros }); got != c.want {
			t.Errorf("%v: got %v, want %v", c.micros, got, c.want)
		}
	}
}

func TestRedisCommands(t *testing.T) {
	n, err := redisCommands("# Stats\r\ntotal_connections_received:3\r\ntotal_commands_processed:123456789012\r\ninstantaneous_ops_per_sec:0\r\n")
	if err != nil || n != 123456789012 {
		t.Errorf("got %d, %v", n, err)
	}
	if n, err := redisCommands("# Stats\r\nx_total_commands_processed:1\r\n"); err == nil {
		t.Errorf("got %d", n)
	}
}
