package measure

import (
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// settle is how long a server has to come to rest before its memory is read.
const settle = time.Second

// Descriptors returns how many more descriptors this process may open, of which a few are
// kept back for other work, here and in a server, whose limit is the same.
func Descriptors() (int, error) {
	var limit syscall.Rlimit
	// Go has raised the soft limit to the hard one (package os).
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("RLIMIT_NOFILE: %w", err)
	}
	const kept = 500
	return int(min(limit.Cur, 1<<20)) - kept, nil
}

// Idle opens n connections to the server, has each answer one request, leaves them open,
// and returns the server's memory before and with them.
func Idle(p *Process, request []byte, n int) (before, with int64, err error) {
	time.Sleep(settle)
	if before, err = p.RSS(); err != nil {
		return 0, 0, err
	}
	const dialers = 8
	open := make([][]net.Conn, dialers)
	defer func() {
		for _, conns := range open {
			for _, c := range conns {
				_ = c.Close()
			}
		}
	}()
	errs := make([]error, dialers)
	var wg sync.WaitGroup
	for i := range dialers {
		wg.Go(func() {
			// An address has 28,000 ports to connect from by default; each dialer has its own.
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i))}}
			for range (n - i + dialers - 1) / dialers {
				c, err := oneAnswer(&d, p.Addr, request)
				if err != nil {
					errs[i] = fmt.Errorf("%s, connection %d of a dialer: %w", p.Name, len(open[i])+1, err)
					return
				}
				open[i] = append(open[i], c)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, 0, err
		}
	}
	time.Sleep(settle)
	with, err = p.RSS()
	return before, with, err
}

// oneAnswer returns a connection on which one request was answered.
func oneAnswer(d *net.Dialer, addr string, request []byte) (net.Conn, error) {
	c, err := d.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	if err = c.SetDeadline(time.Now().Add(patience)); err == nil {
		_, err = c.Write(request)
	}
	var resp fasthttp.Response
	if err == nil {
		err = readAnswer(&resp, c)
	}
	if err == nil && resp.StatusCode() != fasthttp.StatusOK {
		err = fmt.Errorf("status %d", resp.StatusCode())
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}
