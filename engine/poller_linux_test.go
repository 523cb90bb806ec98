package engine

import (
	"net"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPass has a goroutine wait for a socket on the only P while the leader always has
// events. It is far from the 10 ms after which the runtime's monitor would look.
func TestPass(t *testing.T) {
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	near, far := socketPair(t)
	var turns atomic.Int64
	go func() {
		b := make([]byte, 1)
		for {
			if _, err := far.Read(b); err != nil {
				return
			}
			turns.Add(1)
		}
	}()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	busy, err := unix.Eventfd(1, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(busy)                                  //nolint:errcheck // nothing is lost
	if err := p.add(busy, 7, 0, unix.EPOLLIN); err != nil { // level: always ready
		t.Fatal(err)
	}
	needed := make([]int, 21)
	for round := range needed {
		p.pass() // the goroutine comes to wait
		if _, err := near.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		for turns.Load() <= int64(round) {
			p.pass()
			needed[round]++
			if tag, _, _ := p.event(0); p.n != 1 || tag != 7 {
				t.Fatalf("round %d: %d events", round, p.n)
			}
		}
	}
	// Most: on a busy host, a thread of the runtime may be kept from telling what it has seen.
	slices.Sort(needed)
	if n := needed[len(needed)/2]; n > 20 {
		t.Errorf("the goroutine has its turn after %d passes, in the middle of %v", n, needed)
	}
	if n := testing.AllocsPerRun(100, p.pass); n != 0 {
		t.Errorf("a pass allocates %v objects", n)
	}
	if p.armed {
		t.Error("the gate stays open: each event wakes a thread that waits for something else")
	}
}

// socketPair returns both ends of a TCP connection.
func socketPair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() //nolint:errcheck // it was for one connection
	if near, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	return near, far
}
