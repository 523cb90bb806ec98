package engine

import (
	"bufio"
	"bytes"
	"io"
	"log"
	"net"
	"regexp"
	"syscall"
	"testing"

	"github.com/valyala/fasthttp"
)

// wire is a connection without sockets: the engine reads the scripted pieces
// and what it sends is collected.
type wire struct {
	in       [][]byte
	out      bytes.Buffer
	room     int // bytes send takes; negative: any number
	shut     bool
	closed   int
	sends    int
	eof      bool   // after the pieces; EAGAIN otherwise
	detached string // what was sent before the connection was promoted
}

func (w *wire) system() *system {
	return &system{
		recv: func(_ int, p []byte) (int, syscall.Errno) {
			switch {
			case len(w.in) > 0:
				n := copy(p, w.in[0])
				if w.in[0] = w.in[0][n:]; len(w.in[0]) == 0 {
					w.in = w.in[1:]
				}
				return n, 0
			case w.eof:
				return 0, 0
			}
			return -1, syscall.EAGAIN
		},
		send: func(_ int, p []byte) (int, syscall.Errno) {
			w.sends++
			switch {
			case w.room == 0:
				return -1, syscall.EAGAIN
			case w.room > 0 && len(p) > w.room:
				p = p[:w.room]
			}
			if w.room > 0 {
				w.room -= len(p)
			}
			n, _ := w.out.Write(p)
			return n, 0
		},
		shutdown: func(int) syscall.Errno { w.shut = true; return 0 },
		abort:    func(int) syscall.Errno { return 0 },
		close:    func(int) syscall.Errno { w.closed++; return 0 },
		detach: func(int) (net.Conn, error) {
			w.detached = w.out.String()
			return nil, net.ErrClosed
		},
		local:  func(int) net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} },
		remote: func(int) net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1234} },
	}
}

// bench is a loop whose only connection is a wire.
type bench struct {
	*wire
	loop *loop
	conn *conn
}

func newBench(t testing.TB, s *Server, w *wire) *bench {
	t.Helper()
	s.sys = w.system()
	s.Loops = 1
	if s.Logger == nil {
		s.Logger = log.New(io.Discard, "", 0)
	}
	s.prepare()
	l := newLoop(s, 0, s.sys, &poller{epfd: -1, wakefd: -1, tickfd: -1, gate: -1}, nil)
	return &bench{wire: w, loop: l, conn: l.enter(0, nil)}
}

// feed makes the pieces arrive one after the other, each with its own event.
func (b *bench) feed(pieces ...[]byte) {
	for _, p := range pieces {
		if b.conn.is(closed) || len(p) == 0 {
			continue
		}
		b.in = append(b.in, bytes.Clone(p))
		b.event(readable)
	}
}

func (b *bench) event(r readiness) {
	if b.conn.is(closed) {
		return
	}
	if b.loop.ready(b.conn, r) {
		panic("the loop was lost")
	}
	b.rest()
}

// rest handles the backlog.
func (b *bench) rest() {
	for range 8 {
		todo := b.loop.backlog
		b.loop.backlog = nil
		for _, c := range todo {
			c.queued = false
			if b.loop.resume(c) {
				panic("the loop was lost")
			}
		}
	}
}

// end makes the client's stream end.
func (b *bench) end() {
	b.eof = true
	b.event(readable | halfShut)
}

var dateLine = regexp.MustCompile(`Date: [^\r]*\r\n`)

// sent returns what was sent, without dates.
func (b *bench) sent() string { return dateLine.ReplaceAllString(b.out.String(), "") }

// serveStream sends a stream through the engine, in pieces, then ends it.
func serveStream(t testing.TB, s *Server, pieces ...[]byte) string {
	t.Helper()
	b := newBench(t, s, &wire{room: -1})
	b.feed(pieces...)
	b.end()
	if b.closed != 1 {
		t.Fatalf("closed %d times after the end of the stream", b.closed)
	}
	if b.loop.open != 0 || len(b.loop.slots) != 1 || b.conn.in != nil || b.conn.out != nil {
		t.Fatalf("the loop still holds something: open %d, in %v", b.loop.open, b.conn.in)
	}
	return b.sent()
}

// streamConn is the same stream for fasthttp.Server.
type streamConn struct {
	net.Conn
	r   io.Reader
	out bytes.Buffer
}

func (c *streamConn) Read(p []byte) (int, error)  { return c.r.Read(p) }
func (c *streamConn) Write(p []byte) (int, error) { return c.out.Write(p) }
func (c *streamConn) Close() error                { return nil }
func (c *streamConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1234}
}

func (c *streamConn) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func serveFasthttp(s *fasthttp.Server, stream []byte) string {
	c := &streamConn{r: bytes.NewReader(stream)}
	_ = s.ServeConn(c)
	return dateLine.ReplaceAllString(c.out.String(), "")
}

// answers parses responses to the requests with the given methods.
func statuses(t testing.TB, out string) []int {
	t.Helper()
	var list []int
	r := bufio.NewReader(bytes.NewReader([]byte(out)))
	for {
		if _, err := r.Peek(1); err != nil {
			return list
		}
		var resp fasthttp.Response
		if err := resp.Read(r); err != nil {
			t.Fatalf("answer %d of %q: %v", len(list), out, err)
		}
		list = append(list, resp.StatusCode())
	}
}
