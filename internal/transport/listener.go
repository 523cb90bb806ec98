package transport

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// listener keeps accepting through shortages, refuses what is too many, and
// tracks what it accepted.
type listener struct {
	net.Listener
	conns    *tracker
	log      *slog.Logger
	maxConns int
	overload func(status int) []byte
	once     sync.Once
}

const (
	// The pause after an accept that failed for want of a resource doubles
	// from the first value to the last, as in net/http.
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second

	// refusalTime bounds the write of a refusal. The buffer of a new socket is
	// empty, so it never waits unless something is very wrong.
	refusalTime = 10 * time.Millisecond
)

// Accept returns the next connection. fasthttp takes any error for the end of
// the listener; a process out of descriptors would stop serving for good.
func (l *listener) Accept() (net.Conn, error) {
	pause := firstPause
	for {
		c, err := l.Listener.Accept()
		switch {
		case err == nil && l.conns.len() >= l.maxConns:
			l.refuse(c)
		case err == nil:
			return l.conns.add(c), nil
		case !passing(err):
			return nil, err
		default:
			l.log.Warn("cannot accept a connection now", "error", err, "pause", pause)
			time.Sleep(pause)
			pause = min(2*pause, lastPause)
		}
	}
}

// refuse answers a connection that is one too many and closes it.
func (l *listener) refuse(c net.Conn) {
	if l.overload != nil && c.SetWriteDeadline(time.Now().Add(refusalTime)) == nil {
		_, _ = c.Write(l.overload(fasthttp.StatusServiceUnavailable)) // whoever does not get it sees the close
	}
	_ = c.Close()
}

// Close closes the listener, once: a second call does nothing.
func (l *listener) Close() (err error) {
	l.once.Do(func() { err = l.Listener.Close() })
	return err
}

// passing reports whether accept(2) failed for a reason that goes away: no
// descriptor or memory left, or a client that left the queue.
func passing(err error) bool {
	for _, e := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
