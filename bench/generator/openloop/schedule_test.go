package openloop

import (
	"math"
	"slices"
	"testing"
	"time"
)

// times returns when requests are due on each of the threads.
func times(c Config) [][]time.Duration {
	if c.Threads == 0 {
		c.Threads = 1
	}
	all := make([][]time.Duration, c.Threads)
	for i := range all {
		s := newSchedule(&c, i)
		for due, ok := s.next(); ok; due, ok = s.next() {
			all[i] = append(all[i], due)
		}
	}
	return all
}

func TestConstant(t *testing.T) {
	got := times(Config{Shape: Constant, Rate: 1000, Duration: 5 * time.Millisecond})[0]
	want := []time.Duration{0, 1e6, 2e6, 3e6, 4e6}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// A rate whose gap is no whole number of nanoseconds does not drift.
	long := times(Config{Shape: Constant, Rate: 30_000, Duration: 100 * time.Second})[0]
	if len(long) != 3_000_000 || long[2_999_997] != 99_999_900_000 {
		t.Errorf("%d requests, number 2,999,997 at %d ns", len(long), long[2_999_997])
	}
}

func TestThreadsShareASchedule(t *testing.T) {
	for _, c := range []Config{
		{Shape: Constant, Rate: 7000, Duration: time.Second, Threads: 3},
		{Shape: Pulse, Rate: 7000, On: 3 * time.Millisecond, Off: time.Millisecond, Duration: time.Second, Threads: 3},
	} {
		together := slices.Concat(times(c)...)
		slices.Sort(together)
		c.Threads = 1
		if one := times(c)[0]; !slices.Equal(one, together) {
			t.Errorf("%s: three threads have %d requests, one has %d, or at other times", c.Shape, len(together), len(one))
		}
	}
}

func TestPulse(t *testing.T) {
	got := times(Config{Shape: Pulse, Rate: 1000, On: 3 * time.Millisecond, Off: 7 * time.Millisecond, Duration: 22 * time.Millisecond})[0]
	want := []time.Duration{0, 1e6, 2e6, 10e6, 11e6, 12e6, 20e6, 21e6}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// 16,000 times 0.2 is not 3,200 in floating point, for some.
	for _, rate := range []float64{16_000, 4_100, 33_300, 7} {
		c := Config{Shape: Pulse, Rate: rate, On: 200 * time.Millisecond, Off: 800 * time.Millisecond, Duration: 10 * time.Second}
		due := times(c)[0]
		if want := int(math.Ceil(rate*2/10)) * 10; len(due) != want {
			t.Errorf("rate %v: %d requests, want %d", rate, len(due), want)
		}
		for _, d := range due {
			if d%time.Second >= c.On {
				t.Fatalf("rate %v: due at %v, in the pause", rate, d)
			}
		}
	}
}

func TestJitter(t *testing.T) {
	c := Config{Shape: Jitter, Rate: 10_000, Duration: 20 * time.Second, Seed: 5, Threads: 2}
	got := times(c)
	if again := times(c); !slices.EqualFunc(got, again, slices.Equal) {
		t.Error("the same seed gives other times")
	}
	if slices.Equal(got[0], got[1]) {
		t.Error("both threads have the same times")
	}
	c.Seed++
	if other := times(c); slices.Equal(other[0], got[0]) {
		t.Error("another seed gives the same times")
	}
	due := slices.Concat(got...)
	slices.Sort(due)
	// The count of a Poisson process has the deviation of its root; the seeds are fixed.
	if n, want := float64(len(due)), 200_000.0; math.Abs(n-want) > 5*math.Sqrt(want) {
		t.Errorf("%.0f requests, want about %.0f", n, want)
	}
	long := 0
	for i := 1; i < len(due); i++ {
		if due[i]-due[i-1] > 300*time.Microsecond { // three times the mean
			long++
		}
	}
	if part, want := float64(long)/float64(len(due)), math.Exp(-3); math.Abs(part-want) > want/10 {
		t.Errorf("%.4f of the gaps exceed three times the mean, want %.4f", part, want)
	}
}
