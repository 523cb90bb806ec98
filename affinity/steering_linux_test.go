package affinity

import (
	"errors"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// group is a real SO_REUSEPORT group on loopback.
type group struct {
	listeners []*net.TCPListener
	accepted  chan int // the index of the listener that did
}

func newGroup(t *testing.T, n int) *group {
	t.Helper()
	g := &group{accepted: make(chan int)}
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var errOption error
		err := raw.Control(func(fd uintptr) {
			errOption = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, errOption)
	}}
	lc.SetMultipathTCP(false)
	addr := "127.0.0.1:0"
	for i := range n {
		ln, err := lc.Listen(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
		addr = ln.Addr().String()
		g.listeners = append(g.listeners, ln.(*net.TCPListener))
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				_ = c.Close()
				select {
				case g.accepted <- i:
				case <-t.Context().Done(): // a failed test reads no more
					return
				}
			}
		}()
	}
	return g
}

// connectFrom makes n connections on a CPU and counts who accepted them.
func (g *group) connectFrom(t *testing.T, cpu, n int) (counts []int) {
	t.Helper()
	counts = make([]int, len(g.listeners))
	addr := g.listeners[0].Addr().String()
	if err := onThread(func() error {
		if err := setThreadMask(0, SetOf(cpu)); err != nil {
			return err
		}
		for range n {
			// The first packet leaves in connect(2), which is called on this
			// thread, and on loopback is handled on its CPU.
			c, err := net.DialTimeout("tcp", addr, 10*time.Second)
			if err != nil {
				return err
			}
			_ = c.Close()
			select {
			case i := <-g.accepted:
				counts[i]++
			case <-time.After(10 * time.Second):
				return errors.New("nobody accepted")
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return counts
}

func TestSteeringByCPU(t *testing.T) {
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	// Two loops more, so that a hash would hardly ever look like steering.
	g := newGroup(t, allowed.Len()+2)
	first := g.listeners[0]

	// CPU i to listener i, then backwards: one is in place of the other.
	byCPU := onePerCPU(allowed)
	backwards := slices.Clone(byCPU)
	for i := range backwards {
		backwards[i].First = len(g.listeners) - 1 - i
	}
	for _, s := range []Steering{byCPU, backwards} {
		if err := s.Attach(first); err != nil {
			t.Fatal(err)
		}
		for _, target := range s {
			cpu, _ := target.CPUs.Min()
			const n = 40
			if counts := g.connectFrom(t, cpu, n); counts[target.First] != n {
				t.Errorf("CPU %d: connections by listener %v, want all %d at %d", cpu, counts, n, target.First)
			}
		}
	}

	// Any listener of the group will do.
	if err := Detach(g.listeners[1]); err != nil {
		t.Fatal(err)
	}
	cpu, _ := allowed.Min()
	g.wantAll(t, cpu, "after Detach")
	if err := Detach(first); !errors.Is(err, unix.ENOENT) {
		t.Errorf("Detach of nothing: %v, want ENOENT", err)
	}
}

// wantAll fails if one of a few listeners gets none of 200 connections, which
// a hash does by chance less than once in 10^20 times.
func (g *group) wantAll(t *testing.T, cpu int, when string) {
	t.Helper()
	if counts := g.connectFrom(t, cpu, 200); slices.Min(counts) == 0 {
		t.Errorf("%s: connections by listener %v, want some at each", when, counts)
	}
}

func TestSteeringToRangesAtRandom(t *testing.T) {
	first, second := twoCPUs(t)
	g := newGroup(t, 5)
	a, b := set(t, first), set(t, second)
	if err := (Steering{{a, 0, 3}, {b, 3, 2}}).Attach(g.listeners[4]); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		cpu      Set
		from, to int
	}{{a, 0, 3}, {b, 3, 5}} {
		cpu, _ := tt.cpu.Min()
		counts := g.connectFrom(t, cpu, 200)
		for i, n := range counts {
			if in := i >= tt.from && i < tt.to; in != (n > 0) {
				t.Errorf("CPU %d: connections by listener %v, want them at %d to %d", cpu, counts, tt.from, tt.to-1)
				break
			}
		}
	}
}

// CPUs in no target, and a listener that has left the group, are left to the
// kernel's hash.
func TestSteeringFallsBackToTheHash(t *testing.T) {
	first, second := twoCPUs(t)
	g := newGroup(t, 3)
	a, _ := set(t, first).Min()
	b, _ := set(t, second).Min()
	if err := (Steering{{SetOf(a), 1, 1}}).Attach(g.listeners[0]); err != nil {
		t.Fatal(err)
	}
	g.wantAll(t, b, "a CPU in no target")
	if err := (Steering{{SetOf(a), 7, 1}}).Attach(g.listeners[0]); err != nil {
		t.Fatal(err)
	}
	g.wantAll(t, a, "a listener beyond the group")
}

// The caveat of the documentation: the last listener takes the place of one
// that is closed.
func TestSteeringWhenAListenerCloses(t *testing.T) {
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	cpu, _ := allowed.Min()
	g := newGroup(t, 3)
	if err := (Steering{{allowed, 0, 1}}).Attach(g.listeners[1]); err != nil {
		t.Fatal(err)
	}
	if err := g.listeners[0].Close(); err != nil {
		t.Fatal(err)
	}
	g.listeners[0] = g.listeners[1] // has the address
	if counts := g.connectFrom(t, cpu, 20); counts[2] != 20 {
		t.Errorf("connections by listener %v, want all at the last", counts)
	}
}

// The kernel takes the largest programs, and so checks all of their jumps.
func TestAttachLargePrograms(t *testing.T) {
	g := newGroup(t, 1)
	for _, s := range []Steering{
		onePerCPU(set(t, "0-2047")),
		onePerCPU(set(t, "0-1535:1/2")),
		{{set(t, "0-1023:1/2"), 0, 16}, {set(t, "1-1023:1/2"), 16, 16}},
	} {
		program, err := s.program()
		if err != nil {
			t.Fatal(err)
		}
		// Sockets may have little memory for options (net.core.optmem_max).
		if err := s.Attach(g.listeners[0]); err != nil && !errors.Is(err, unix.ENOMEM) {
			t.Errorf("a program of %d: %v", len(program), err)
		} else {
			t.Logf("%d instructions: %v", len(program), err)
		}
	}
}

func TestAttachToWhatIsNoGroup(t *testing.T) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := Steering{{set(t, "0"), 0, 1}}
	if err := s.Attach(ln.(*net.TCPListener)); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a listener without SO_REUSEPORT: %v, want EINVAL", err)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Attach(ln.(*net.TCPListener)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener: %v, want net.ErrClosed", err)
	}
}

// What Go listens with by default, where the kernel has it.
func TestAttachToMultipathTCP(t *testing.T) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(true)
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	err = Steering{{set(t, "0"), 0, 1}}.Attach(ln.(*net.TCPListener))
	if !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, unix.EINVAL) {
		t.Errorf("got %v, want an error that wraps errors.ErrUnsupported, or EINVAL without Multipath TCP", err)
	}
}
