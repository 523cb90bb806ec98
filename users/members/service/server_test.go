package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pinion/users"
	"pinion/users/members"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// odd says that odd ids are members.
func odd(id int64) (users.Member, bool) {
	return users.Member{Level: fmt.Sprintf("level \"%d\"", id), Points: id}, id%2 == 1
}

func start(t *testing.T) (s *Server, url string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = New(odd)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := errors.Join(s.Shutdown(ctx), <-served); err != nil {
			t.Error(err)
		}
	})
	return s, "http://" + ln.Addr().String()
}

func client(t *testing.T, url string, timeout time.Duration) *members.Client {
	t.Helper()
	c, err := members.New(members.Options{BaseURL: url, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestMembers(t *testing.T) {
	s, url := start(t)
	c := client(t, url, 10*time.Second)
	var ids []int64
	for i := range int64(1000) {
		ids = append(ids, math.MaxInt64-i)
	}
	got, err := c.Members(context.Background(), ids)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		want, is := odd(id)
		if m, found := got[id]; found != is || is && m != want {
			t.Errorf("%d: got %v, %v", id, m, found)
		}
	}
	if requests, n := s.Requests(); requests != 4 || n != 1000 {
		t.Errorf("%d requests for %d ids, want 4 for 1000", requests, n)
	}
}

func TestWrongRequests(t *testing.T) {
	_, url := start(t)
	many := strings.TrimSuffix(strings.Repeat("1,", 257), ",")
	for _, c := range []struct {
		method, target string
		want           int
	}{
		{"GET", "/", 404},
		{"GET", "/members/1", 404},
		{"POST", "/members?ids=1", 405},
		{"GET", "/members", 400},
		{"GET", "/members?ids=", 400},
		{"GET", "/members?ids=0", 400},
		{"GET", "/members?ids=1,", 400},
		{"GET", "/members?ids=1,x", 400},
		{"GET", "/members?ids=" + many, 400},
		{"GET", "/members?ids=" + many[2:], 200},
	} {
		req, err := http.NewRequest(c.method, url+c.target, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Close = true
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s %.30s: got %d, want %d", c.method, c.target, resp.StatusCode, c.want)
		}
	}
}

func TestKnobs(t *testing.T) {
	s, url := start(t)
	c := client(t, url, 10*time.Second)
	turn := func(k Knobs) {
		t.Helper()
		if err := s.SetKnobs(k); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(c *members.Client) error {
		_, err := c.Members(context.Background(), []int64{1})
		return err
	}

	turn(Knobs{Latency: 50 * time.Millisecond, Jitter: time.Millisecond})
	began := time.Now()
	if err := ask(c); err != nil || time.Since(began) < 50*time.Millisecond {
		t.Errorf("slow: %v after %v", err, time.Since(began))
	}
	turn(Knobs{FailRatio: 1})
	if err := ask(c); !errors.Is(err, members.ErrAnswer) || !strings.Contains(err.Error(), "status 500") {
		t.Errorf("failing: %v", err)
	}
	turn(Knobs{GarbageRatio: 1})
	if err := ask(c); !errors.Is(err, members.ErrAnswer) || !strings.Contains(err.Error(), "body") {
		t.Errorf("garbled: %v", err)
	}
	turn(Knobs{HangRatio: 1})
	if err := ask(client(t, url, 20*time.Millisecond)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("hanging: %v", err)
	}
	turn(Knobs{FailRatio: 0.5})
	failures := 0
	for range 200 {
		if ask(c) != nil {
			failures++
		}
	}
	if failures < 40 || failures > 160 { // nine standard deviations off
		t.Errorf("%d of 200 failed, want about 100", failures)
	}
	turn(Knobs{})
	if err := ask(c); err != nil {
		t.Error(err)
	}
}

func TestWrongKnobs(t *testing.T) {
	s := New(odd)
	for _, k := range []Knobs{
		{Latency: -1},
		{Jitter: -1},
		{FailRatio: -0.1},
		{HangRatio: 1.1},
		{GarbageRatio: math.NaN()},
		{FailRatio: 0.5, HangRatio: 0.4, GarbageRatio: 0.2},
	} {
		if err := s.SetKnobs(k); !errors.Is(err, ErrKnob) {
			t.Errorf("%+v: got %v", k, err)
		}
	}
}

// TestTurnWakes has requests hang and sleep while the knobs are turned.
func TestTurnWakes(t *testing.T) {
	s, url := start(t)
	if err := s.SetKnobs(Knobs{Latency: time.Hour, HangRatio: 0.5}); err != nil {
		t.Fatal(err)
	}
	c := client(t, url, time.Minute)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if _, err := c.Members(context.Background(), []int64{1}); err == nil || !strings.Contains(err.Error(), "status 503") {
				t.Errorf("got %v, want status 503", err)
			}
		})
	}
	for {
		if n, _ := s.Requests(); n == 10 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(10 * time.Millisecond) // a request counts a little before it waits
	if err := s.SetKnobs(Knobs{}); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}
