package engine

import (
	"bytes"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFaults fails the Nth call of recv or send, once or for ever, and expects
// the loop to be in order afterwards: temporary faults change nothing but when
// the bytes go, others close that connection and no more.
func TestFaults(t *testing.T) {
	stream := "GET /a HTTP/1.1\r\nHost: a\r\n\r\nPOST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" +
		"GET /big HTTP/1.1\r\nHost: a\r\n\r\nGET /c HTTP/1.1\r\nHost: a\r\n\r\n"
	want := serveStream(t, engineOf(), []byte(stream))
	for _, call := range []string{"recv", "send"} {
		for _, errno := range []syscall.Errno{syscall.EAGAIN, syscall.EINTR, syscall.ECONNRESET, syscall.EPIPE, syscall.ETIMEDOUT, syscall.ENOMEM} {
			for nth := range 6 {
				for _, forever := range []bool{false, true} {
					if forever && errno == syscall.EINTR {
						continue // the kernel does not do that
					}
					w := &wire{room: -1}
					b := newBench(t, engineOf(), w)
					calls := 0
					fails := func() bool {
						calls++
						return calls-1 == nth || forever && calls-1 > nth
					}
					recv, send := b.loop.sys.recv, b.loop.sys.send
					if call == "recv" {
						b.loop.sys.recv = func(fd int, p []byte) (int, syscall.Errno) {
							if fails() {
								return -1, errno
							}
							return recv(fd, p)
						}
					} else {
						b.loop.sys.send = func(fd int, p []byte) (int, syscall.Errno) {
							if fails() {
								return -1, errno
							}
							return send(fd, p)
						}
					}
					b.feed(split(stream, []int{30, 31, 90})...)
					for range 20 {
						b.event(readable | writable) // what the kernel would report
					}
					b.end()
					b.event(writable | readable | halfShut)
					temporary := errno == syscall.EAGAIN || errno == syscall.EINTR
					switch got := b.sent(); {
					case temporary && !forever && got != want:
						t.Errorf("%s %v at call %d: got %q", call, errno, nth, clip(got))
					case !strings.HasPrefix(want, got):
						t.Errorf("%s %v at call %d: got %q, not the start of the answers", call, errno, nth, clip(got))
					}
					if !b.conn.is(closed) {
						if !temporary || !forever {
							t.Errorf("%s %v at call %d, forever %v: not closed", call, errno, nth, forever)
						}
						b.loop.drop(b.conn)
					}
					if b.closed != 1 || b.loop.open != 0 || b.conn.in != nil || b.conn.out != nil || b.conn.waiting != waitNone {
						t.Errorf("%s %v at call %d: closed %d times, the loop holds %d", call, errno, nth, b.closed, b.loop.open)
					}
				}
			}
		}
	}
}

// TestShortWrites takes a few bytes at a time, and sees that no further request
// is served while an answer waits.
func TestShortWrites(t *testing.T) {
	stream := strings.Repeat("GET /big HTTP/1.1\r\nHost: a\r\n\r\n", 20)
	want := serveStream(t, engineOf(), []byte(stream))
	for _, step := range []int{1000, 40_000, 100_000} {
		b := newBench(t, engineOf(), &wire{room: step})
		b.feed([]byte(stream))
		for b.out.Len() < len(want)-20 { // dates are cut from want
			if waiting := len(b.conn.out); waiting > 200_000 {
				t.Fatalf("%d bytes wait for the client", waiting)
			}
			before := b.out.Len()
			b.room = step
			b.event(writable)
			if b.out.Len() == before {
				break
			}
		}
		b.room = -1
		b.event(writable)
		b.end()
		if got := b.sent(); got != want {
			t.Fatalf("%d bytes at a time: got %d bytes, want %d", step, len(got), len(want))
		}
	}
}

// TestPromotionWaitsForAnswers asks for an upgrade behind a request whose
// answer the client has not taken.
func TestPromotionWaitsForAnswers(t *testing.T) {
	stream := "GET /big HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
	for _, cut := range [][]int{nil, {80}, {20, 60}} {
		b := newBench(t, engineOf(), &wire{room: 100})
		b.feed(split(stream, cut)...)
		if b.detached != "" || b.conn.is(closed) {
			t.Fatalf("cut at %v: promoted with %d bytes of answers left", cut, len(b.conn.out))
		}
		b.room = -1
		b.event(writable)
		if n := len(b.detached); n < 80_000 || !b.conn.is(closed) || b.loop.open != 0 {
			t.Fatalf("cut at %v: promoted after %d bytes, closed %v", cut, n, b.conn.is(closed))
		}
	}
}

// TestMemoryFollowsReceivedBytes announces large bodies and sends little.
func TestMemoryFollowsReceivedBytes(t *testing.T) {
	s := engineOf()
	s.MaxRequestBodySize = 1 << 30
	b := newBench(t, s, &wire{room: -1})
	b.feed([]byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\nabc"))
	if n := cap(b.conn.in.buf); n > 4096 {
		t.Errorf("%d bytes for an announced body", n)
	}
	b = newBench(t, s, &wire{room: -1})
	b.feed([]byte("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"))
	for range 10_000 { // ten bytes of framing for one of the body
		b.feed([]byte("1;ext\r\nx\r\n"))
		if b.conn.in == nil {
			break // refused for its extensions
		}
	}
	if in := b.conn.in; in != nil && cap(in.buf) > 64<<10 {
		t.Errorf("%d bytes for 10,000 chunks of one byte", cap(in.buf))
	}
}

// TestLingersForTheRefused keeps reading after a refusal, for a while and up to
// a limit, so that the answer is not lost to a reset.
func TestLingersForTheRefused(t *testing.T) {
	refused := []byte("GET / HTTP/1.1\n")
	b := newBench(t, engineOf(), &wire{room: -1})
	b.feed(refused)
	if !b.shut || b.closed != 0 {
		t.Fatalf("shut %v, closed %d", b.shut, b.closed)
	}
	b.feed([]byte("more"), []byte("GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"))
	if b.closed != 0 {
		t.Fatal("closed while the client sends")
	}
	b.advance(lingerTimeout + 3*time.Second)
	if b.closed != 1 {
		t.Fatal("lingers for ever")
	}
	b = newBench(t, engineOf(), &wire{room: -1})
	b.feed(refused)
	for range 100 {
		b.feed(bytes.Repeat([]byte("x"), readBuffer))
	}
	if b.closed != 1 {
		t.Fatal("reads without end")
	}
	if strings.Contains(b.sent(), "smuggled") {
		t.Fatal("served on")
	}
}
