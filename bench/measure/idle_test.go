package measure

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestIdle opens connections that the server must hold all at once.
func TestIdle(t *testing.T) {
	p := start(t, "")
	const n = 1000
	m, err := Idle(t.Context(), p, Request("GET", "/", ""), n)
	if err != nil {
		t.Fatal(err)
	}
	// fasthttp keeps a goroutine and two buffers of 4 KiB for each.
	if each := float64(m.RSSMany-m.RSSFew) / float64(m.Many-m.Few); m.Few != n/4 || m.Many != n || each < 1000 {
		t.Errorf("%.0f bytes a connection: %+v", each, m)
	}
	if _, err := Idle(t.Context(), p, Request("GET", "/no", ""), 4); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("a refused request: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Idle(over, p, Request("GET", "/", ""), 4); !errors.Is(err, context.Canceled) {
		t.Errorf("called off: %v", err)
	}
}

// TestConnectInterrupted has signals come while a connection waits for a place in the
// queue of a listener. The runtime sends itself such, to preempt goroutines.
func TestConnectInterrupted(t *testing.T) {
	ln, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ln) //nolint:errcheck // nothing is written
	if err := errors.Join(unix.Bind(ln, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(ln, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(ln)
	if err != nil {
		t.Fatal(err)
	}
	in4, ok := name.(*unix.SockaddrInet4)
	if !ok {
		t.Fatalf("listens on %T", name)
	}
	to := netip.AddrPortFrom(netip.AddrFrom4(in4.Addr), uint16(in4.Port))
	first, err := connect([4]byte{127, 0, 0, 1}, to) // takes the only place
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(int(first)) //nolint:errcheck // nothing is written

	thread := make(chan int, 1)
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		thread <- unix.Gettid()
		s, err := connect([4]byte{127, 0, 0, 1}, to)
		if err == nil {
			err = s.send([]byte("x"))
			_ = unix.Close(int(s))
		}
		done <- err
	}()
	tid := <-thread
	for i := 0; ; i++ {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			if i < 20 {
				t.Errorf("it was interrupted %d times at most", i)
			}
			return
		case <-time.After(10 * time.Millisecond):
		}
		if err := unix.Tgkill(os.Getpid(), tid, unix.SIGURG); err != nil {
			t.Fatal(err)
		}
		if i == 20 {
			if conn, _, err := unix.Accept(ln); err == nil {
				defer unix.Close(conn) //nolint:errcheck // nothing is written
			}
		}
	}
}

func TestIdleOf(t *testing.T) {
	for limit, want := range map[uint64]int{1_500: 1_000, 20_000: 19_500, 1 << 40: 20_000} {
		if got, err := idleOf(limit); err != nil || got != want {
			t.Errorf("limit %d: %d, %v, want %d", limit, got, err, want)
		}
	}
	if n, err := idleOf(1_499); !errors.Is(err, ErrDescriptors) {
		t.Errorf("limit 1499: %d, %v", n, err)
	}
}
