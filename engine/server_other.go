//go:build !linux

package engine

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"syscall"
	"time"
)

// errPlatform is why nothing here works: the loops are built on epoll(7).
var errPlatform = fmt.Errorf("engine: event loops on %s: %w", runtime.GOOS, errors.ErrUnsupported)

// Listen is supported on Linux only; elsewhere it returns an error that wraps
// errors.ErrUnsupported.
func Listen(string, int) ([]net.Listener, error) { return nil, errPlatform }

func listenerFD(net.Listener) (int, error) { return -1, errPlatform }

func closeListener(ln net.Listener) error { return ln.Close() }

func kernel() *system {
	return &system{close: func(int) syscall.Errno { return 0 }}
}

type readiness uint32

const (
	readable readiness = 1 << iota
	writable
	halfShut
	hungUp
)

const (
	tagWake   = -1
	tagTick   = -2
	tagListen = -3
)

type poller struct{ n int }

func newPoller() (*poller, error) { return nil, errPlatform }

func (p *poller) close()                               {}
func (p *poller) poll() int                            { return 0 }
func (p *poller) dwell() int                           { return 0 }
func (p *poller) arm(bool)                             {}
func (p *poller) park()                                {}
func (p *poller) pass()                                {}
func (p *poller) event(int) (int32, uint32, readiness) { return 0, 0, 0 }
func (p *poller) watch(int, int32, uint32) error       { return errPlatform }
func (p *poller) want(int, int32, uint32)              {}
func (p *poller) forget(int)                           {}
func (p *poller) listen(int, int) error                { return errPlatform }
func (p *poller) wake()                                {}
func (p *poller) tick(time.Duration, bool)             {}
func (p *poller) rearm()                               {}
