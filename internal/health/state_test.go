package health

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// reason is "" for ready.
func reason(t *testing.T, s *State) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := s.Check(ctx)
	if err == nil {
		return ""
	}
	var not *NotReadyError
	if !errors.As(err, &not) {
		t.Fatalf("Check returned %T: %v", err, err)
	}
	if err.Error() != not.Reason {
		t.Errorf("Error() = %q, want the reason %q alone", err, not.Reason)
	}
	return not.Reason
}

func TestPhases(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(s *State)
		want string
	}{
		"new":                  {func(*State) {}, ReasonStarting},
		"ready":                {func(s *State) { s.SetReady() }, ""},
		"draining":             {func(s *State) { s.SetReady(); s.SetDraining() }, ReasonDraining},
		"signal while started": {func(s *State) { s.SetDraining(); s.SetReady() }, ReasonDraining},
		"drained, ready again": {func(s *State) { s.SetReady(); s.SetDraining(); s.SetReady() }, ReasonDraining},
	} {
		s := New(Config{})
		tc.do(s)
		if got := reason(t, s); got != tc.want {
			t.Errorf("%s: reason %q, want %q", name, got, tc.want)
		}
	}
}

func TestPingIsNotAskedUnlessReady(t *testing.T) {
	s := New(Config{Ping: func(context.Context) error { t.Error("asked"); return nil }})
	_ = reason(t, s)
	s.SetDraining()
	_ = reason(t, s)
}

// TestPingIsAskedOncePerInterval also checks that the answer, good or bad, is kept.
func TestPingIsAskedOncePerInterval(t *testing.T) {
	secret := errors.New("dial tcp 10.0.0.7:3306: refused")
	for _, answer := range []error{nil, secret} {
		var asked atomic.Int32
		s := New(Config{Interval: time.Hour, Log: quiet(), Ping: func(context.Context) error {
			asked.Add(1)
			return answer
		}})
		s.SetReady()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for range 100 {
					err := s.Check(context.Background())
					if (err == nil) != (answer == nil) {
						t.Errorf("Check = %v", err)
					}
					if answer != nil && (!errors.Is(err, secret) || err.Error() != ReasonUnreachable) {
						t.Errorf("Check = %v, want %q that wraps the cause", err, ReasonUnreachable)
					}
				}
			})
		}
		wg.Wait()
		if n := asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
	}
}

func TestPingIsAskedAgain(t *testing.T) {
	var down atomic.Bool
	told := new(syncBuffer)
	s := New(Config{
		Interval: time.Nanosecond, Log: slog.New(slog.NewTextHandler(told, nil)),
		Ping: func(context.Context) error {
			if down.Load() {
				return errors.New("gone away")
			}
			return nil
		},
	})
	s.SetReady()
	for _, d := range []bool{false, true, true, true, false, false} {
		down.Store(d)
		want := ""
		if d {
			want = ReasonUnreachable
		}
		if got := reason(t, s); got != want {
			t.Errorf("reason %q, want %q", got, want)
		}
	}
	waitFor(t, func() bool { return strings.Count(told.String(), "\n") == 2 })
	if log := told.String(); !strings.Contains(log, `error="gone away"`) || !strings.Contains(log, "ready again") {
		t.Errorf("told %s", log)
	}
}

// TestProbeThatLeaves checks that the first probe does not take the answer away from
// the others, and does not start another Ping.
func TestProbeThatLeaves(t *testing.T) {
	var asked atomic.Int32
	entered, answer := make(chan struct{}), make(chan struct{})
	s := New(Config{Timeout: time.Minute, Interval: time.Hour, Ping: func(ctx context.Context) error {
		asked.Add(1)
		close(entered)
		select {
		case <-answer:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}})
	s.SetReady()

	first, leave := context.WithCancel(context.Background())
	left := make(chan error)
	go func() { left <- s.Check(first) }()
	<-entered
	others := make(chan error)
	for range 5 {
		go func() { others <- s.Check(context.Background()) }()
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) || err.Error() != ReasonUnfinished {
		t.Errorf("the probe that left got %v", err)
	}
	close(answer)
	for range 5 {
		if err := <-others; err != nil {
			t.Errorf("a probe that stayed got %v", err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestPingThatHangs has a Ping that does not even heed its context.
func TestPingThatHangs(t *testing.T) {
	var asked atomic.Int32
	release := make(chan struct{})
	s := New(Config{Timeout: time.Millisecond, Interval: time.Nanosecond, Log: quiet(), Ping: func(context.Context) error {
		asked.Add(1)
		<-release
		return nil
	}})
	s.SetReady()
	for range 5 {
		if got := reason(t, s); got != ReasonUnreachable {
			t.Errorf("reason %q, want %q", got, ReasonUnreachable)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("%d Pings hang", n)
	}
	close(release)
	waitFor(t, func() bool { return s.Check(context.Background()) == nil })
}

func TestDrainingWhileAsked(t *testing.T) {
	var s *State
	s = New(Config{Ping: func(context.Context) error { s.SetDraining(); return nil }})
	s.SetReady()
	if got := reason(t, s); got != ReasonDraining {
		t.Errorf("reason %q, want %q", got, ReasonDraining)
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("did not happen within 10 s")
		}
	}
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
