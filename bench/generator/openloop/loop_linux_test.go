package openloop

import (
	"net"
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

// A connection that has served is connected anew at once when it is lost: a pause would be
// in the latency of what is due meanwhile, and would be the client's. One that never has
// gets its pause, or the loop would do nothing but connect.
func TestConnectsAtOnce(t *testing.T) {
	for served, want := range map[bool]state{true: connecting, false: down} {
		lost := make(chan struct{})
		c := config(serve(t, func(*net.TCPConn) { <-lost }))
		c.Conns = 1
		l, err := newLoop(&c, 0, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		defer l.close()
		l.halt = new(atomic.Bool)
		if err := l.open(); err != nil {
			t.Fatal(err)
		}
		only := l.conns[0]
		only.served = served
		close(lost)
		err = l.until(func() (bool, error) { return only.state != idle, nil }, l.now()+time.Minute)
		if err != nil || only.state != want {
			t.Errorf("served %v: state %d, want %d, %v", served, only.state, want, err)
		}
	}
}
