package stats

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestShards(t *testing.T) {
	for _, tc := range []struct{ asked, want int }{
		{1, 1}, {2, 2}, {3, 4}, {4, 4}, {5, 8}, {1000, 1024}, {1 << 20, 1024},
	} {
		c := NewRegistry(tc.asked).Counter("a_total", "").With()
		if got := len(c.cells); got != tc.want {
			t.Errorf("NewRegistry(%d): %d shards, want %d", tc.asked, got, tc.want)
		}
	}
	for _, asked := range []int{0, -1} {
		if n := len(NewRegistry(asked).Counter("a_total", "").With().cells); n < 1 || n&(n-1) != 0 {
			t.Errorf("NewRegistry(%d): %d shards", asked, n)
		}
	}
}

func TestSnapshot(t *testing.T) {
	r := NewRegistry(4)
	requests := r.Counter("requests_total", "Requests.", "handler", "code")
	requests.With("users", "404").Add(3, 2)
	requests.With("users", "200").Add(0, 5)
	requests.With("ping", "200").Add(1, 1)
	requests.With("users", "200").Add(math.MaxUint64, 6)
	r.Gauge("open", "Open things.", "loop").Func(func() float64 { return 1.5 }, "0")
	h := r.Histogram("took_seconds", "Time.", []float64{0.001, 0.5, 2}).With()
	for i, d := range []time.Duration{
		0, time.Millisecond, time.Millisecond + 1, 500 * time.Millisecond, 2 * time.Second, time.Hour, -5,
	} {
		h.Observe(uint64(i), d)
	}
	r.Counter("empty_total", "No series yet.", "x")

	want := []Family{
		{Name: "empty_total", Help: "No series yet.", Kind: KindCounter, LabelNames: []string{"x"}, Series: []Series{}},
		{Name: "open", Help: "Open things.", Kind: KindGauge, LabelNames: []string{"loop"}, Series: []Series{
			{LabelValues: []string{"0"}, Value: 1.5},
		}},
		{Name: "requests_total", Help: "Requests.", Kind: KindCounter, LabelNames: []string{"handler", "code"}, Series: []Series{
			{LabelValues: []string{"ping", "200"}, Value: 1},
			{LabelValues: []string{"users", "200"}, Value: 11},
			{LabelValues: []string{"users", "404"}, Value: 2},
		}},
		{Name: "took_seconds", Help: "Time.", Kind: KindHistogram, Series: []Series{{
			LabelValues: []string{},
			Buckets:     []Bucket{{0.001, 3}, {0.5, 5}, {2, 6}},
			Sum:         3602.502000001,
			Count:       7,
		}}},
	}
	got := r.Snapshot()
	if len(got) != len(want) {
		t.Fatalf("%d families, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if fmt.Sprintf("%+v", got[i]) != fmt.Sprintf("%+v", want[i]) {
			t.Errorf("family %d\n got %+v\nwant %+v", i, got[i], want[i])
		}
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}

	// The snapshot is the caller's: writing to it must not reach the registry.
	got[2].LabelNames[0], got[2].Series[0].LabelValues[0] = "spoilt", "spoilt"
	if again := r.Snapshot()[2]; again.LabelNames[0] != "handler" || again.Series[0].LabelValues[0] != "ping" {
		t.Errorf("a snapshot shares memory with the registry: %+v", again)
	}
}

func TestSameFamilyTwice(t *testing.T) {
	r := NewRegistry(1)
	if a, b := r.Counter("a_total", "A.", "x"), r.Counter("a_total", "A.", "x"); a != b {
		t.Error("the same counter family gave two vecs")
	}
	if a, b := r.Gauge("b", "B."), r.Gauge("b", "B."); a != b {
		t.Error("the same gauge family gave two vecs")
	}
	h := r.Histogram("c_seconds", "C.", []float64{1, 2}, "x")
	if h != r.Histogram("c_seconds", "C.", []float64{1, 2}, "x") {
		t.Error("the same histogram family gave two vecs")
	}
	if first, again := h.With("1"), h.With("1"); first != again {
		t.Error("the same label values gave two histograms")
	}
	if h.With("1") == h.With("2") {
		t.Error("different label values gave one histogram")
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
}

func TestLabelValuesDoNotRunTogether(t *testing.T) {
	v := NewRegistry(1).Counter("a_total", "", "x", "y")
	for i, values := range [][]string{{"ab", "c"}, {"a", "bc"}, {"", "abc"}, {"abc", ""}, {"1:a", ""}, {"", "1:a"}} {
		if c := v.With(values...); c.Value() != 0 {
			t.Errorf("%d: %q shares its counter with an earlier one", i, values)
		} else {
			c.Add(0, 1)
		}
	}
	if v.With("\xff", "") != v.With("\uFFFD", "") {
		t.Error("an invalid byte in a label value was not replaced")
	}
}

func TestGaugeFuncIsReplaced(t *testing.T) {
	r := NewRegistry(1)
	g := r.Gauge("open", "")
	g.Func(func() float64 { return 1 })
	g.Func(func() float64 {
		r.Counter("made_while_scraped_total", "").With().Add(0, 1) // must not deadlock
		return 2
	})
	if s := r.Snapshot()[0].Series; len(s) != 1 || s[0].Value != 2 {
		t.Errorf("got %+v, want one series of value 2", s)
	}
}

func TestWrongUseIsReported(t *testing.T) {
	bounds := []float64{1, 2}
	for name, tc := range map[string]struct {
		do   func(r *Registry)
		want string
	}{
		"other kind":      {func(r *Registry) { r.Gauge("taken_total", "Taken.", "x") }, "taken_total is already registered with another shape"},
		"other help":      {func(r *Registry) { r.Counter("taken_total", "Other.", "x") }, "taken_total is already registered with another shape"},
		"other labels":    {func(r *Registry) { r.Counter("taken_total", "Taken.", "y").With("1").Add(0, 9) }, "taken_total is already registered with another shape"},
		"other bounds":    {func(r *Registry) { r.Histogram("h", "", []float64{1, 3}).With().Observe(0, 1) }, "h is already registered with another shape"},
		"few values":      {func(r *Registry) { r.Counter("taken_total", "Taken.", "x").With().Add(1, 9) }, "taken_total has 1 labels, got the values []"},
		"many values":     {func(r *Registry) { r.Gauge("g", "").Func(func() float64 { return 9 }, "a") }, "g has 0 labels, got the values [\"a\"]"},
		"empty name":      {func(r *Registry) { r.Counter("", "") }, `"" is not a metric name`},
		"name":            {func(r *Registry) { r.Counter("1a", "") }, `"1a" is not a metric name`},
		"label":           {func(r *Registry) { r.Counter("a", "", "b-c") }, `a: "b-c" is not a label name`},
		"reserved label":  {func(r *Registry) { r.Counter("a", "", "__name__") }, `a: "__name__" is not a label name`},
		"le":              {func(r *Registry) { r.Histogram("a", "", bounds, "le") }, `a: "le" is not a label name`},
		"label twice":     {func(r *Registry) { r.Counter("a", "", "b", "b") }, `a: label "b" is named twice`},
		"descending":      {func(r *Registry) { r.Histogram("a", "", []float64{2, 1}).With().Observe(0, 1) }, "a: bound 1: "},
		"equal":           {func(r *Registry) { r.Histogram("a", "", []float64{1, 1}) }, "a: bound 1: "},
		"zero":            {func(r *Registry) { r.Histogram("a", "", []float64{0}) }, "a: bound 0: "},
		"not a number":    {func(r *Registry) { r.Histogram("a", "", []float64{math.NaN()}) }, "a: bound NaN: "},
		"infinite":        {func(r *Registry) { r.Histogram("a", "", []float64{1, math.Inf(1)}) }, "a: bound +Inf: "},
		"too many bounds": {func(r *Registry) { r.Histogram("a", "", make([]float64, 200)) }, "a: 200 bounds, at most 126 are possible"},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRegistry(2)
			r.Counter("taken_total", "Taken.", "x").With("1").Add(0, 1)
			r.Histogram("h", "", bounds)
			r.Gauge("g", "")
			before := r.Snapshot()
			tc.do(r)
			err := r.Err()
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("Err() = %v, want something with %q", err, tc.want)
			}
			if shape := strings.Contains(tc.want, "shape"); errors.Is(err, ErrShape) != shape {
				t.Errorf("errors.Is(%v, ErrShape) = %v", err, !shape)
			}
			if after := r.Snapshot(); !reflect.DeepEqual(before, after) {
				t.Errorf("wrong use shows in the snapshot:\n got %+v\nwant %+v", after, before)
			}
		})
	}
}

func TestErrorsAreBounded(t *testing.T) {
	r := NewRegistry(1)
	v := r.Counter("a_total", "")
	for range 1000 {
		v.With("extra")
	}
	if n := strings.Count(r.Err().Error(), "\n"); n > 64 {
		t.Errorf("%d errors kept", n)
	}
}

// TestManyFamilies makes the arena go on to further blocks, with histograms that do
// not fill them evenly.
func TestManyFamilies(t *testing.T) {
	r := NewRegistry(2)
	bounds := make([]float64, maxBounds)
	for i := range bounds {
		bounds[i] = float64(i + 1)
	}
	h := r.Histogram("h", "", bounds, "n")
	c := r.Counter("c_total", "", "n")
	const n = 50
	for i := range n {
		for range i {
			h.With(fmt.Sprint(i)).Observe(uint64(i), time.Duration(i)*time.Second)
			c.With(fmt.Sprint(i)).Add(uint64(i), 1)
		}
	}
	for _, f := range r.Snapshot() {
		for _, s := range f.Series {
			got := s.Value
			if f.Kind == KindHistogram {
				got = float64(s.Count)
			}
			if s.LabelValues[0] != fmt.Sprint(got) {
				t.Errorf("%s{n=%q} = %v", f.Name, s.LabelValues[0], got)
			}
		}
		if len(f.Series) != n-1 { // nobody asked for number 0
			t.Errorf("%s has %d series", f.Name, len(f.Series))
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	const goroutines, rounds = 8, 2000
	r := NewRegistry(4)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			requests := r.Counter("requests_total", "", "code")
			took := r.Histogram("took_seconds", "", []float64{1})
			for i := range rounds {
				requests.With(fmt.Sprint(i%3)).Add(uint64(g), 1)
				took.With().Observe(uint64(g), time.Duration(i)*time.Millisecond)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	last := uint64(0)
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		for _, f := range r.Snapshot() {
			for _, s := range f.Series {
				if f.Kind != KindHistogram {
					continue
				}
				if s.Count < last || s.Buckets[0].Count > s.Count {
					t.Fatalf("count went from %d to %+v", last, s)
				}
				last = s.Count
			}
		}
	}
	if want := uint64(goroutines * rounds); last != want {
		t.Errorf("%d observations, want %d", last, want)
	}
	sum := uint64(0)
	for i := range 3 {
		sum += r.Counter("requests_total", "", "code").With(fmt.Sprint(i)).Value()
	}
	if want := uint64(goroutines * rounds); sum != want {
		t.Errorf("counters add up to %d, want %d", sum, want)
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
}

// TestCounterFunc reads a counter that is kept elsewhere.
func TestCounterFunc(t *testing.T) {
	reg := NewRegistry(2)
	var elsewhere atomic.Uint64
	vec := reg.Counter("requests_total", "Requests.", "loop")
	vec.Func(elsewhere.Load, "0")
	elsewhere.Store(7)
	vec.With("0").Add(0, 3)
	for _, f := range reg.Snapshot() {
		if len(f.Series) != 1 || f.Series[0].Value != 10 {
			t.Errorf("got %+v, want 10", f.Series)
		}
	}
}
