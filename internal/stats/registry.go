package stats

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// maxShards bounds what a histogram costs on a machine with very many CPUs.
const maxShards = 1024

// ErrShape is wrapped by what Registry.Err reports when a name is registered again
// with another kind, help, labels or bounds.
var ErrShape = errors.New("is already registered with another shape")

// Registry is a set of families. It is safe for concurrent use.
type Registry struct {
	mu       sync.Mutex // guards what follows; never held while a vec's lock is taken
	arena    arena
	families map[string]family
	errs     []error
}

// family is what the three kinds of vec have in common.
type family interface {
	describe() desc
	collect() []Series
}

// NewRegistry returns an empty Registry whose counters have that many shards,
// rounded up to a power of two and at most 1024. Zero or less means GOMAXPROCS; one
// per event loop is right. A counter costs 8 bytes per shard.
func NewRegistry(shards int) *Registry {
	if shards <= 0 {
		shards = runtime.GOMAXPROCS(0)
	}
	shards = 1 << bits.Len(uint(min(shards, maxShards)-1))
	return &Registry{
		arena:    arena{shards: shards},
		families: make(map[string]family),
	}
}

// Counter registers a family of counters. By convention the name ends in _total.
// Registering a name again with the same shape returns the same vec; see the
// package's Errors section for one that cannot be registered.
func (r *Registry) Counter(name, help string, labels ...string) *CounterVec {
	v := new(CounterVec)
	v.reg, v.desc = r, desc{name: name, help: help, kind: KindCounter, labels: slices.Clone(labels)}
	return register(r, v, nil)
}

// Gauge registers a family of gauges; see Counter for names and errors.
func (r *Registry) Gauge(name, help string, labels ...string) *GaugeVec {
	v := new(GaugeVec)
	v.reg, v.desc = r, desc{name: name, help: help, kind: KindGauge, labels: slices.Clone(labels)}
	return register(r, v, nil)
}

// Histogram registers a family of histograms of durations. bounds are the inclusive
// upper ends of the buckets in seconds, ascending, a nanosecond apart or more, at
// most 126; the bucket above them all is implied. See Counter for names and errors.
func (r *Registry) Histogram(name, help string, bounds []float64, labels ...string) *HistogramVec {
	v := new(HistogramVec)
	v.reg, v.desc = r, desc{
		name: name, help: help, kind: KindHistogram,
		labels: slices.Clone(labels), bounds: slices.Clone(bounds),
	}
	limits, err := nanoseconds(bounds)
	if err != nil {
		err = fmt.Errorf("stats: %s: %w", name, err)
	} else {
		v.bounds, v.limits = v.desc.bounds, limits
	}
	return register(r, v, err)
}

// register puts v in r, or returns the one of the same shape that is there already.
// If neither is possible, or err says v is wrong, it notes the error and returns v,
// which then works but is never collected.
func register[V family](r *Registry, v V, err error) V {
	d := v.describe()
	if err == nil {
		err = d.check()
	}
	if err != nil {
		r.fail(err)
		return v
	}
	r.mu.Lock()
	old, taken := r.families[d.name]
	if !taken {
		r.families[d.name] = v
	}
	r.mu.Unlock()
	if !taken {
		return v
	}
	if same, ok := old.(V); ok && same.describe().equal(d) {
		return same
	}
	r.fail(fmt.Errorf("stats: %s %w", d.name, ErrShape))
	return v
}

// Err is nil if every registration and every With so far was right, else all that
// were not, joined.
func (r *Registry) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.errs...)
}

func (r *Registry) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// With may be called for as long as the program runs; one page of errors says it all.
	const most = 64
	if len(r.errs) < most {
		r.errs = append(r.errs, err)
	}
}

// alloc is called with the lock of a vec held.
func (r *Registry) alloc(n int) [][]atomic.Uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.arena.alloc(n)
}

// Snapshot reads every family, ordered by name, its series ordered by label values.
// The result is the caller's. It does not stop writers.
func (r *Registry) Snapshot() []Family {
	r.mu.Lock()
	families := make([]family, 0, len(r.families))
	for _, f := range r.families {
		families = append(families, f)
	}
	r.mu.Unlock()

	all := make([]Family, len(families))
	for i, f := range families {
		d := f.describe()
		all[i] = Family{
			Name: d.name, Help: d.help, Kind: d.kind,
			LabelNames: slices.Clone(d.labels), Series: f.collect(),
		}
	}
	slices.SortFunc(all, func(a, b Family) int { return strings.Compare(a.Name, b.Name) })
	return all
}
