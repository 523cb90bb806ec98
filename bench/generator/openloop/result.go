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
}

func newTally() tally { return tally{latency: newHistogram(), lag: newHistogram()} }

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
}

// sending counts how late a request goes out that was due, on the connection that has been
// idle since free, longer than any other. If it was not idle yet when the request became
// due, none was, and until then the wait was not the generator's fault.
func (t *tally) sending(due, free, now time.Duration) {
	add(t.lag, now-max(due, free))
	if free > due+patience {
		t.starved++
	}
}

func (t *tally) ownLag() Lag {
	if t.lag.TotalCount() == 0 {
		return Lag{} // Max would be the upper end of the first bucket
	}
	return Lag{P99: float64(t.lag.ValueAtPercentile(99)) / 1e3, Max: float64(t.lag.Max()) / 1e3}
}

// What a generator that keeps up does not exceed.
const (
	patience = time.Millisecond // own lag, p99
	tooBusy  = 0.98
	tooMany  = 0.01 // starved, of all that were due
	tooLong  = 0.01 // preempted; more, and the p99 may be that of the scheduler
)

// verdict says whether the generator did what it was asked for.
func (t *tally) verdict(busy, preempted float64) (keptUp bool, reason string) {
	p99 := time.Duration(t.lag.ValueAtPercentile(99))
	switch {
	case p99 > patience:
		return false, fmt.Sprintf("the p99 of its own lag is %v, above %v", p99.Round(time.Microsecond), patience)
	case t.unsent > 0:
		return false, fmt.Sprintf("%d of %d requests were due and not sent although connections were free", t.unsent, t.due)
	case preempted > tooLong:
		return false, fmt.Sprintf("others had its CPU for %.1f %% of the time", preempted*100)
	case busy > tooBusy && float64(t.starved) > tooMany*float64(t.due):
		// A connection is free when its answer has been read. Of a loop without a moment
		// to spare nobody can say whether that waited for the server or for the loop.
		return false, fmt.Sprintf("it was busy %.0f %% of the time while %d of %d requests waited for a connection: it may be the limit, not the server",
			busy*100, t.starved, t.due)
	}
	return true, ""
}
