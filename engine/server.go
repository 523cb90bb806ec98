package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	defaultHeaderTimeout  = 10 * time.Second
	defaultHangupGrace    = time.Second
	defaultMaxHeaderBytes = 16 << 10
	minHeaderBytes        = 256
	maxKeptBody           = 64 << 10
	bodyGrace             = 5 * time.Second // before MinBodyRate counts
	bodyCheck             = time.Second
	lingerTimeout         = 2 * time.Second
	inlineBody            = 64 << 10
)

// Server serves a fasthttp.RequestHandler on event loops. The zero value with a
// Handler is usable. Fields must not change after the first call of Serve. A
// Server serves once; it must not be copied.
//
// The fields that fasthttp.Server also has mean the same here, except where
// their comments say otherwise.
type Server struct {
	// Handler answers the requests. It must be set.
	Handler fasthttp.RequestHandler

	// NonBlocking says that Handler never blocks unless it calls MayBlock
	// first. Otherwise every request is treated as if it did.
	NonBlocking bool

	// ErrorHandler answers requests that the engine refuses; err is an *Error.
	// It runs on the loop and must not block. The connection closes after the
	// answer. By default the answer is the status and a line of text.
	ErrorHandler func(ctx *fasthttp.RequestCtx, err error)

	// Logger takes what ctx.Logger() logs, and the panics of handlers. By
	// default slog.Default() at level warn.
	Logger fasthttp.Logger

	// Name is sent as Server header where the handler sets none. Empty sends
	// none.
	Name string

	// HeaderTimeout is the time for a whole head, from its first byte or, on
	// a new connection, from the accept. 0 means ReadTimeout or, without one,
	// 10 s; negative means none.
	HeaderTimeout time.Duration

	// ReadTimeout is the time for a whole request with its body, from its
	// first byte. 0 means none.
	ReadTimeout time.Duration

	// WriteTimeout is the time for the client to take what it was sent; it
	// starts anew when it has taken everything, and for each wait of a
	// streamed answer. 0 means none.
	WriteTimeout time.Duration

	// IdleTimeout is the time between two requests of a connection. 0 means
	// ReadTimeout.
	IdleTimeout time.Duration

	// HangupGrace is how long the context of a request outlives the end of
	// the client's stream: it does not tell a client that left from one that
	// only finished sending. 0 means 1 s; negative means for ever.
	HangupGrace time.Duration

	// MinBodyRate is the least bytes per second of a request body, counted
	// after its first 5 s. 0 means no minimum.
	MinBodyRate int

	// MaxHeaderBytes bounds a head with its request line, and the trailers of
	// a chunked body. 0 means 16 KiB; at least 256.
	MaxHeaderBytes int

	// MaxRequestBodySize bounds a body, in bytes. Memory is taken as bytes
	// arrive. 0 means fasthttp.DefaultMaxRequestBodySize.
	MaxRequestBodySize int

	// StreamRequestBody promotes requests with chunked bodies or bodies above
	// 64 KiB to fasthttp.Server, which calls the handler before the body has
	// arrived. Otherwise all bodies are collected first.
	StreamRequestBody bool

	// MaxConns bounds the open connections; more are answered with 503. 0
	// means fasthttp.DefaultConcurrency.
	MaxConns int

	// MaxConnsPerIP bounds the open connections of one address; more are
	// answered with 429. 0 means no bound.
	MaxConnsPerIP int

	// Overload makes the answer to a connection that is refused, with 503
	// because of MaxConns or 429 because of MaxConnsPerIP: a whole HTTP/1.1
	// response with Connection: close. It runs on the loop and must not block.
	// By default the answer has no body.
	Overload func(status int) []byte

	// MaxRequestsPerConn closes a connection after so many requests. 0 means
	// no bound.
	MaxRequestsPerConn int

	// DisableKeepalive closes each connection after its first answer.
	DisableKeepalive bool

	// NoDefaultContentType leaves Content-Type away where the handler sets
	// none.
	NoDefaultContentType bool

	// KeepSocketFiles leaves the files of Unix listeners where they are. Without
	// it Serve removes them at its end, which is wrong for sockets that belong to
	// another process, as those of systemd or of a supervisor.
	KeepSocketFiles bool

	// Loops is the number of event loops. 0 means GOMAXPROCS.
	Loops int

	limits    limits
	started   time.Time
	stopping  atomic.Uint32
	conns     atomic.Int64
	loops     sync.WaitGroup
	exchanges sync.Pool
	writers   sync.Pool
	sys       *system // nil: the kernel; tests put theirs here

	promotions sync.WaitGroup

	mu            sync.Mutex
	all           []*loop
	serving       bool
	perIP         map[netip.Addr]int
	promotedConns map[*promoted]struct{}
	fasthttp      *fasthttp.Server
	log           fasthttp.Logger
}

// ListenAndServe listens on addr, "host:port" or "unix:/path", and serves until
// Shutdown. It returns ErrServerClosed then.
func (s *Server) ListenAndServe(addr string) error {
	lns, err := Listen(addr, s.loopCount())
	if err != nil {
		return err
	}
	return s.Serve(lns...)
}

// Serve serves the connections of the listeners, which it takes over, until
// Shutdown, and returns ErrServerClosed then. The listeners must be TCP or Unix
// ones. Loop i takes listener i; a single listener is shared by all loops.
func (s *Server) Serve(lns ...net.Listener) error {
	files := socketFiles(lns)
	err := s.start(lns)
	if err != nil {
		for _, ln := range lns {
			if u, ok := ln.(*net.UnixListener); ok && s.KeepSocketFiles {
				u.SetUnlinkOnClose(false)
			}
			_ = ln.Close()
		}
		return err
	}
	s.loops.Wait()
	if !s.KeepSocketFiles {
		files.remove()
	}
	return ErrServerClosed
}

// start sets everything up and starts the loops.
func (s *Server) start(lns []net.Listener) error {
	if s.Handler == nil {
		return errors.New("engine: Server.Handler is nil")
	}
	if len(lns) == 0 {
		return errors.New("engine: no listener")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping.Load() != running {
		return ErrServerClosed
	}
	if s.serving {
		return errors.New("engine: Serve was called before")
	}
	s.prepare()
	n := s.loopCount()
	fds := make([][]int, n)
	pollers := make([]*poller, 0, n)
	fail := func(err error) error {
		for _, p := range pollers {
			p.close()
		}
		for _, list := range fds {
			for _, fd := range list {
				_ = s.sys.close(fd)
			}
		}
		return err
	}
	for i := range max(n, len(lns)) {
		fd, err := listenerFD(lns[i%len(lns)])
		if err != nil {
			return fail(err)
		}
		fds[i%n] = append(fds[i%n], fd)
	}
	for i := range n {
		p, err := newPoller()
		if err != nil {
			return fail(err)
		}
		pollers = append(pollers, p)
		for j, fd := range fds[i] {
			if err := p.listen(fd, j); err != nil {
				return fail(err)
			}
		}
	}
	for _, ln := range lns {
		if err := closeListener(ln); err != nil {
			return fail(fmt.Errorf("engine: take over listener %v: %w", ln.Addr(), err))
		}
	}
	s.serving = true
	for i, p := range pollers {
		s.all = append(s.all, newLoop(s, i, s.sys, p, fds[i]))
	}
	s.loops.Add(n)
	for _, l := range s.all {
		go l.lead()
	}
	return nil
}

// prepare fills what Serve needs from the options.
func (s *Server) prepare() {
	if s.sys == nil {
		s.sys = kernel()
	}
	s.started = time.Now()
	s.perIP = make(map[netip.Addr]int)
	s.promotedConns = make(map[*promoted]struct{})
	s.log = s.Logger
	if s.log == nil {
		s.log = slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn)
	}
	s.limits = limits{head: s.MaxHeaderBytes, body: int64(s.MaxRequestBodySize)}
	if s.limits.head <= 0 {
		s.limits.head = defaultMaxHeaderBytes
	}
	s.limits.head = max(s.limits.head, minHeaderBytes)
	if s.limits.body <= 0 {
		s.limits.body = fasthttp.DefaultMaxRequestBodySize
	}
	if s.StreamRequestBody {
		s.limits.inline = inlineBody
	}
}

func (s *Server) loopCount() int {
	if s.Loops > 0 {
		return s.Loops
	}
	return runtime.GOMAXPROCS(0)
}

// timers returns the timers of a loop.
func (s *Server) timers() timers {
	var t timers
	t.timeout[waitLinger] = lingerTimeout
	t.timeout[waitIdle] = s.IdleTimeout
	if s.IdleTimeout == 0 {
		t.timeout[waitIdle] = s.ReadTimeout
	}
	t.timeout[waitHead] = s.HeaderTimeout
	if s.HeaderTimeout == 0 {
		t.timeout[waitHead] = defaultHeaderTimeout
		if s.ReadTimeout > 0 {
			t.timeout[waitHead] = s.ReadTimeout
		}
	}
	if s.ReadTimeout > 0 || s.MinBodyRate > 0 {
		t.timeout[waitBody] = bodyCheck
		if s.ReadTimeout > 0 {
			t.timeout[waitBody] = min(bodyCheck, s.ReadTimeout)
		}
	}
	t.timeout[waitWrite] = s.WriteTimeout
	t.timeout[waitGone] = s.HangupGrace
	if s.HangupGrace == 0 {
		t.timeout[waitGone] = defaultHangupGrace
	}
	// The clock ticks at an eighth of the shortest timeout that was asked
	// for, between 5 ms and 1 s.
	tick := time.Second
	for _, d := range []time.Duration{s.IdleTimeout, s.HeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.HangupGrace} {
		if d > 0 {
			tick = min(tick, d/8)
		}
	}
	t.slack = max(tick, 5*time.Millisecond)
	return t
}

// clock returns the time since Serve, in nanoseconds, never 0.
func (s *Server) clock() int64 { return int64(time.Since(s.started)) + 1 }

func (s *Server) logger() fasthttp.Logger { return s.log }

func (s *Server) logf(format string, args ...any) { s.log.Printf(format, args...) }

func (s *Server) exchange() *exchange {
	if x, ok := s.exchanges.Get().(*exchange); ok {
		return x
	}
	return &exchange{}
}

func (s *Server) writer() *writer {
	if w, ok := s.writers.Get().(*writer); ok {
		return w
	}
	return newWriter(s.sys)
}

// refusal is the answer at the door, to a connection that is one too many.
// Nothing was read yet, and nothing will be.
func (s *Server) refusal(status int) []byte {
	if s.Overload != nil {
		return s.Overload(status)
	}
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
		status, fasthttp.StatusMessage(status))
}

// admit counts a connection in. For one too many it returns the status to
// refuse it with, else 0.
func (s *Server) admit(sys *system, fd int) (*addresses, int) {
	limit := int64(s.MaxConns)
	if limit <= 0 {
		limit = fasthttp.DefaultConcurrency
	}
	if s.conns.Add(1) > limit {
		s.conns.Add(-1)
		return nil, fasthttp.StatusServiceUnavailable
	}
	if s.MaxConnsPerIP <= 0 {
		return nil, 0
	}
	addrs := &addresses{remote: sys.remote(fd)}
	ip, ok := addrs.ip()
	if !ok {
		return addrs, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.perIP[ip] >= s.MaxConnsPerIP {
		s.conns.Add(-1)
		return nil, fasthttp.StatusTooManyRequests
	}
	s.perIP[ip]++
	addrs.counted = true
	return addrs, 0
}

// release counts a connection out.
func (s *Server) release(addrs *addresses) {
	s.conns.Add(-1)
	if addrs == nil || !addrs.counted {
		return
	}
	ip, _ := addrs.ip()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.perIP[ip]--; s.perIP[ip] <= 0 {
		delete(s.perIP, ip)
	}
}

// Shutdown stops accepting, closes idle connections, and waits until the
// requests in progress are answered. When ctx ends first, the contexts of those
// requests end, their connections are closed, and Shutdown returns the cause of
// ctx without waiting for handlers that do not return. Hijacked connections are
// closed last.
func (s *Server) Shutdown(ctx context.Context) error {
	s.tell(stopSoft)
	done := make(chan struct{})
	go func() {
		s.loops.Wait()
		s.promotions.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("engine: shutdown: %w", context.Cause(ctx))
		s.tell(stopForced)
	}
	s.closePromoted()
	return err
}

// tell makes the loops see a new phase.
func (s *Server) tell(phase uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping.Load() < phase {
		s.stopping.Store(phase)
	}
	for _, l := range s.all {
		l.poller.wake()
	}
}
