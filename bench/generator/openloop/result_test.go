package openloop

import (
	"math"
	"strings"
	"testing"
	"time"

	"pinion/bench/record"
)

func TestVerdict(t *testing.T) {
	const ms = time.Millisecond
	// n of 1000 took longer, and of that something by the generator's doing.
	of := func(n int, latency, own time.Duration) tally {
		t := newTally()
		t.due = 1000
		for i := range 1000 {
			if i < n {
				t.took(latency, own)
			} else {
				t.took(ms/10, 0)
			}
		}
		return t
	}
	with := func(t tally, unsent, starved int64) tally {
		t.unsent, t.starved = unsent, starved
		return t
	}
	for name, c := range map[string]struct {
		tally           tally
		busy, preempted float64
		reason          string // "": it kept up
	}{
		"never late":                       {of(0, 0, 0), 1, 0.5, ""},
		"late, but less than 1 in 100":     {of(9, time.Second, time.Second), 0, 0, ""},
		"late, but the server is later":    {of(1000, 100*ms, 9*ms), 0, 0.009, ""},
		"late, and not worth a word":       {of(1000, ms/10, ms/11), 0, 0.009, ""},
		"late":                             {of(1000, 100*ms, 11*ms), 0, 0.02, "up to 10.9"},
		"late for the 1 in 100 that count": {of(12, 2*ms, ms), 0, 0.02, "others had its CPU for 2.0 %"},
		"given up with free connections":   {with(of(0, 0, 0), 3, 0), 0, 0.009, "3 of 1000 requests were due and not sent"},
		"no connection free":               {with(of(1000, 900*ms, 0), 0, 900), 0.5, 0.009, ""},
		"none free, and no time to read":   {with(of(1000, 900*ms, 0), 0, 11), 0.99, 0.009, "11 of 1000 requests waited"},
		"none free, for want of the CPU":   {with(of(1000, 900*ms, 0), 0, 11), 0.5, 0.48, "up to 480"},
		"none free, and little of the CPU": {with(of(1000, 900*ms, 0), 0, 900), 0.5, 0.05, ""},
		"some free, and little of the CPU": {with(of(1000, 900*ms, 0), 0, 9), 0.5, 0.48, ""},
		"busy with few waiting":            {with(of(0, 0, 0), 0, 9), 1, 0.009, ""},
	} {
		kept, reason := c.tally.verdict(c.busy, c.preempted, c.tally.share(time.Duration(c.preempted*float64(time.Second))))
		if kept != (c.reason == "") || !strings.Contains(reason, c.reason) || kept && reason != "" || strings.Contains(reason, "\n") {
			t.Errorf("%s: kept up %v, reason %q", name, kept, reason)
		}
	}
}

// What is sent late makes what is sent on time behind it wait, until an answer tells that
// nothing waits any more.
func TestOwed(t *testing.T) {
	const ms = time.Millisecond
	tally := newTally()
	tally.usual = ms
	for i, step := range []func(){
		0: func() { tally.sending(10*ms, 2*ms, 15*ms) },
		1: func() { tally.sending(14*ms, 2*ms, 15*ms) }, // less late, behind the other
		2: func() { tally.took(9*ms, 5*ms) },
		3: func() { tally.took(3*ms, 3*ms) }, // who waited no longer has nothing longer before it
		4: func() { tally.sending(20*ms, 2*ms, 21*ms) },
		5: func() { tally.took(ms, 0) },
	} {
		step()
		if want := []time.Duration{5 * ms, 5 * ms, 5 * ms, 3 * ms, 3 * ms, 0}[i]; tally.owed != want {
			t.Errorf("after step %d: %v owed, want %v", i, tally.owed, want)
		}
	}
}

func TestOwnLag(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		due, free, now time.Duration
		lag            time.Duration
		starved        int64
	}{
		{10 * ms, 2 * ms, 10 * ms, 0, 0},
		{10 * ms, 2 * ms, 13 * ms, 3 * ms, 0},
		{10 * ms, 110 * ms, 110 * ms, 0, 1}, // the server's fault
		{10 * ms, 110 * ms, 115 * ms, 5 * ms, 1},
		{10 * ms, 11 * ms, 12 * ms, ms, 0}, // not worth a word
	} {
		tally := newTally()
		tally.sending(c.due, c.free, c.now)
		if got := time.Duration(tally.lag.Max()); (got-c.lag).Abs() > c.lag/500+time.Microsecond || tally.starved != c.starved || tally.lag.TotalCount() != 1 {
			t.Errorf("%+v: lag %v, starved %d", c, got, tally.starved)
		}
	}
}

func TestLatencyOf(t *testing.T) {
	h := newHistogram()
	const n = 100_000
	for i := 1; i <= n; i++ {
		add(h, time.Duration(i)*10*time.Microsecond)
	}
	l := latencyOf(h)
	near := func(got, want float64) bool { return math.Abs(got-want) <= want/500 }
	if !near(l.P50, 5e5) || !near(l.P90, 9e5) || !near(l.P99, 9.9e5) || !near(l.P999, 9.99e5) || !near(l.Max, 1e6) {
		t.Errorf("got %+v", l)
	}
	if len(l.Quantiles) != 42 {
		t.Errorf("%d quantiles", len(l.Quantiles))
	}
	before := record.Quantile{Part: -1}
	for _, q := range l.Quantiles {
		if q.Part <= before.Part || q.Part >= 1 || q.Micros < before.Micros || q.Part > 0 && !near(q.Micros, math.Min(1e6, 10*math.Ceil(q.Part*n))) {
			t.Errorf("%+v after %+v", q, before)
		}
		before = q
	}
	if before.Micros != l.Max {
		t.Errorf("the last is %+v, the maximum %v", before, l.Max)
	}
	if e := latencyOf(newHistogram()); e.Max != 0 || e.Quantiles != nil {
		t.Errorf("of nothing: %+v", e)
	}
}

func TestHistogramBounds(t *testing.T) {
	h := newHistogram()
	for _, d := range []time.Duration{-1, 0, 1, time.Minute, time.Hour} {
		add(h, d)
	}
	if h.TotalCount() != 5 || time.Duration(h.Max()).Round(time.Second) != time.Minute {
		t.Errorf("%d recorded, up to %v", h.TotalCount(), time.Duration(h.Max()))
	}
}

func TestStallTheory(t *testing.T) {
	s := Stall{Rate: 1000, Stop: 100 * time.Millisecond, Every: 2 * time.Second, Duration: 2 * time.Second}
	// The same, request by request.
	h := newHistogram()
	slow := 0.0
	for i := range 2000 {
		at := time.Duration(i) * time.Millisecond % s.Every
		late := max(0, s.Stop-at)
		add(h, late)
		if late >= 50*time.Millisecond {
			slow++
		}
	}
	if got := s.Slower(50 * time.Millisecond); math.Abs(got-slow) > 1 {
		t.Errorf("%v requests take 50 ms, counted %v", got, slow)
	}
	for _, part := range []float64{0, 0.5, 0.9, 0.95, 0.96, 0.97, 0.98, 0.99, 0.999, 1} {
		got, want := s.Quantile(part), time.Duration(h.ValueAtPercentile(part*100))
		if d := got - want; d > 1200*time.Microsecond || d < -1200*time.Microsecond {
			t.Errorf("quantile %v: %v, counted %v", part, got, want)
		}
	}
	l := s.Latency()
	if l.P999 != 98_000 || l.P90 != 0 || l.Max != 100_000 || l.Quantiles[len(l.Quantiles)-1].Micros != l.Max {
		t.Errorf("got %+v", l)
	}
	if s.Slower(s.Stop+1) != 0 {
		t.Error("something takes longer than a stop")
	}
}
