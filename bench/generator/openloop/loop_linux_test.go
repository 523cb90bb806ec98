package openloop

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// TestLookBeforeOpen has the look for lost connections come while some were never open: on
// a slow host the first 64 of 200 take longer than the pause between two looks. Those
// were once connected twice, and the requests on them never ended.
func TestLookBeforeOpen(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() //nolint:errcheck // nothing was sent
	c := Config{URL: "http://" + ln.Addr().String() + "/", Method: "GET", Conns: 200, Threads: 1, Shape: Constant, Duration: time.Second, Timeout: time.Second}
	l, err := newLoop(&c, 0, time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if err := l.look(l.now()); err != nil {
		t.Fatal(err)
	}
	for _, c := range l.conns {
		if c.state != down || c.fd >= 0 {
			t.Fatalf("connection %d was opened: state %d, descriptor %d", c.number, c.state, c.fd)
		}
	}
	l.halt = new(atomic.Bool)
	if err := l.open(); err != nil {
		t.Fatal(err)
	}
	l.conns[7].fd = -1
	l.drop(l.conns[7], 0)
	if err := l.look(l.now()); err != nil || l.conns[7].fd < 0 {
		t.Errorf("a lost connection was left alone: %v", err)
	}
}

// opened returns a loop with its connections open.
func opened(t *testing.T, c *Config) *loop {
	t.Helper()
	l, err := newLoop(c, 0, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	l.halt = new(atomic.Bool)
	if err := l.open(); err != nil {
		t.Fatal(err)
	}
	return l
}

// A connection that has served is connected anew at once when it is lost: a pause would be
// in the latency of what is due meanwhile, and would be the client's. One that never has
// gets its pause, or the loop would do nothing but connect.
func TestConnectsAtOnce(t *testing.T) {
	for served, want := range map[bool]state{true: connecting, false: down} {
		lost := make(chan struct{})
		c := config(serve(t, func(*net.TCPConn) { <-lost }))
		c.Conns = 1
		l := opened(t, &c)
		only := l.conns[0]
		only.served = served
		close(lost)
		err := l.until(func() (bool, error) { return only.state != idle, nil }, l.now()+time.Minute)
		if err != nil || only.state != want {
			t.Errorf("served %v: state %d, want %d, %v", served, only.state, want, err)
		}
	}
}

// An answer that the kernel has and nobody reads is late by the generator's doing, and so
// is what has to wait for its connection.
func TestReadLate(t *testing.T) {
	t.Run("awake", func(t *testing.T) { readLate(t, false) })
	t.Run("asleep", func(t *testing.T) { readLate(t, true) })
}

func readLate(t *testing.T, slept bool) {
	const late = 50 * time.Millisecond
	answered := make(chan struct{}, 2)
	c := config(serve(t, func(conn *net.TCPConn) {
		in := bufio.NewReader(conn)
		for {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			if _, err := io.WriteString(conn, good); err != nil {
				return
			}
			answered <- struct{}{}
		}
	}))
	c.Conns = 1
	l := opened(t, &c)
	l.main.recording = true
	// The kernel keeps times only from a moment after the first socket has asked for them.
	for start := l.now(); ; {
		l.main.tally = newTally()
		now := l.now()
		l.send(l.main.take(), now, now)
		<-answered
		due := l.now()
		time.Sleep(late)
		// Awake, it knows when it last found nothing; asleep, it has the kernel's word.
		l.slept, l.since = slept, due
		if slept {
			l.since = l.now()
		}
		if err := l.read(l.conns[0], false); err != nil || l.main.flying != 0 {
			t.Fatalf("%d are out, %v", l.main.flying, err)
		}
		tally := &l.main.tally
		tally.sending(due, l.conns[0].at, l.now())
		own, lag := time.Duration(tally.latency.Max()-tally.less.Max()), time.Duration(tally.lag.Max())
		if own >= late*9/10 && lag >= late*9/10 {
			return
		}
		if l.now()-start > 20*time.Second {
			t.Fatalf("%v of %v by its own doing, and what waited for the connection was sent %v late, want %v", own, time.Duration(tally.latency.Max()), lag, late)
		}
	}
}
