package openloop

import (
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"pinion/bench/record"
)

// ErrEnded says that the process of the server ended before the run did.
var ErrEnded = errors.New("the server has ended")

// Result is what came of a run.
type Result struct {
	URL      string  `json:"url"`
	Conns    int     `json:"conns"`
	Shape    Shape   `json:"shape"`
	Seed     uint64  `json:"seed"`
	Rate     float64 `json:"rate"`     // that was due, in the mean over pauses, too; 0: closed loop
	Achieved float64 `json:"achieved"` // requests a second
	Due      int64   `json:"due"`      // in a closed loop, what was sent
	Requests int64   `json:"requests"` // answered, with whatever status
	// Seconds are from the start until the last answer was read or given up: at least the
	// Duration, unless the server ended (ErrEnded).
	Seconds float64        `json:"seconds"`
	Latency record.Latency `json:"latency"` // of all that were due
	Errors  record.Errors  `json:"errors"`
	OwnLag  Lag            `json:"own_lag"`
	KeptUp  bool           `json:"kept_up"`
	Reason  string         `json:"reason"` // why it did not
	// Busy is the part of the time for which the loops were not waiting. CPU, in seconds,
	// is what they used: more than that, since a loop that waits for something near does
	// so awake.
	Busy float64 `json:"busy"`
	CPU  float64 `json:"cpu"`
	// Preempted is the part of the time for which the loops were ready to run and others
	// had their CPU. A hypervisor that takes the CPU away does not show in it.
	Preempted float64 `json:"preempted"`
	// ServerCPU is in seconds, of the process asked for and its descendants.
	ServerCPU *float64 `json:"server_cpu,omitempty"`
	Beside    *Beside  `json:"beside,omitempty"`

	// Histogram has the latencies in nanoseconds, and LagHistogram the own lag.
	Histogram    *hdrhistogram.Histogram `json:"-"`
	LagHistogram *hdrhistogram.Histogram `json:"-"`
}

// Lag is how late the generator sent what was due and had a free connection, in
// microseconds.
type Lag struct {
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
	// Share is how much of the p99 of the latency is the generator's doing, at most: what
	// was sent late, what had to wait behind that, and answers that the kernel had before
	// the generator read them.
	Share float64 `json:"share"`
}

// Beside is what came of the closed loop beside.
type Beside struct {
	Requests int64          `json:"requests"`
	Seconds  float64        `json:"seconds"`
	Errors   record.Errors  `json:"errors"`
	Latency  record.Latency `json:"latency"`
}

// tally counts what happens to the requests of one kind.
type tally struct {
	due, sent, answered int64
	// unsent were given up although a connection was free. starved were sent more than
	// patience late because none was.
	unsent, starved int64
	errors          record.Errors
	latency, lag    *hdrhistogram.Histogram
	// less is the latency without what of it was the generator's doing, at most.
	less *hdrhistogram.Histogram
	// owed is how much later than it would have been an answer may come to what is sent
	// now, because of what was sent late before: a burst, behind which it has to wait. All
	// that was sent was late by no more, so neither is what a server makes of it in turn.
	owed  time.Duration
	usual time.Duration // latency, the median so far
}

func newTally() tally {
	return tally{latency: newHistogram(), lag: newHistogram(), less: newHistogram()}
}

// took counts the latency of a request, of which the generator made a part at most. An
// answer as quick as usual says that no burst is left, and another that none was longer.
func (t *tally) took(latency, own time.Duration) {
	add(t.latency, latency)
	add(t.less, latency-own)
	if t.owed = min(t.owed, latency); latency <= t.usual {
		t.owed = 0
	}
}

func (t *tally) merge(o *tally) {
	t.due += o.due
	t.sent += o.sent
	t.answered += o.answered
	t.unsent += o.unsent
	t.starved += o.starved
	t.errors.Status += o.errors.Status
	t.errors.Connect += o.errors.Connect
	t.errors.Read += o.errors.Read
	t.errors.Write += o.errors.Write
	t.errors.Timeout += o.errors.Timeout
	t.latency.Merge(o.latency)
	t.lag.Merge(o.lag)
	t.less.Merge(o.less)
}

// sending counts how late a request goes out that was due, on the connection that has been
// idle since free, longer than any other. If it was not idle yet when the request became
// due, none was, and until then the wait was not the generator's fault.
func (t *tally) sending(due, free, now time.Duration) {
	lag := now - max(due, free)
	add(t.lag, lag)
	t.owed = max(t.owed, lag)
	if free > due+patience {
		t.starved++
	}
}

// share returns how much of the p99 is the generator's doing at most, when others had its
// CPU for a time. While requests wait for connections that time adds up in them.
func (t *tally) share(preempted time.Duration) time.Duration {
	p99 := t.latency.ValueAtPercentile(99)
	share := time.Duration(p99 - t.less.ValueAtPercentile(99))
	if t.starving() {
		share = max(share, min(preempted, time.Duration(p99)))
	}
	return share
}

func (t *tally) starving() bool { return float64(t.starved) > tooMany*float64(t.due) }

func (t *tally) ownLag(share time.Duration) Lag {
	l := Lag{Share: float64(share) / 1e3}
	if t.lag.TotalCount() > 0 { // Max would be the upper end of the first bucket
		l.P99, l.Max = float64(t.lag.ValueAtPercentile(99))/1e3, float64(t.lag.Max())/1e3
	}
	return l
}

// What a generator that keeps up does not exceed.
const (
	patience = time.Millisecond // of a request for a connection, beyond which it starves
	tooBusy  = 0.98
	tooMany  = 0.01 // starved, of all that were due
	tooMuch  = 0.1  // of the p99, by its own doing
	trifle   = 100 * time.Microsecond
)

// verdict says whether the generator did what it was asked for.
func (t *tally) verdict(busy, preempted float64, share time.Duration) (keptUp bool, reason string) {
	p99 := time.Duration(t.latency.ValueAtPercentile(99))
	switch {
	case share > trifle && float64(share) > tooMuch*float64(p99):
		return false, fmt.Sprintf("up to %v of the p99 of %v is its own doing; others had its CPU for %.1f %% of the time",
			share.Round(time.Microsecond), p99.Round(time.Microsecond), preempted*100)
	case t.unsent > 0:
		return false, fmt.Sprintf("%d of %d requests were due and not sent although connections were free", t.unsent, t.due)
	case busy > tooBusy && t.starving():
		// Of a loop without a moment to spare nobody can say whether they waited for the
		// server or for the loop.
		return false, fmt.Sprintf("it was busy %.0f %% of the time while %d of %d requests waited for a connection: it may be the limit, not the server",
			busy*100, t.starved, t.due)
	}
	return true, ""
}
