package transport

import (
	"errors"
	"log/slog"
	"net"
	"syscall"
	"time"
)

// listener keeps accepting through shortages, and tracks what it accepted.
type listener struct {
	net.Listener
	conns *tracker
	log   *slog.Logger
}

// The pause after an accept that failed for want of a resource doubles from
// the first value to the last, as in net/http.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
)

// Accept returns the next connection. fasthttp takes any error for the end of
// the listener; a process out of descriptors would stop serving for good.
func (l *listener) Accept() (net.Conn, error) {
	pause := firstPause
	for {
		c, err := l.Listener.Accept()
		if err == nil {
			return l.conns.add(c), nil
		}
		if !passing(err) {
			return nil, err
		}
		l.log.Warn("cannot accept a connection now", "error", err, "pause", pause)
		time.Sleep(pause)
		pause = min(2*pause, lastPause)
	}
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
