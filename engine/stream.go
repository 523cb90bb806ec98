package engine

import (
	"bufio"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// stream sends an answer with a body stream. It blocks as long as the stream
// and the client make it, within WriteTimeout for each wait.
func (x *exchange) stream() {
	s, c := x.loop.srv, x.conn
	x.streamed = true
	resp := x.response()
	// HTTP/1.0 clients cannot read the chunked coding: without a length the
	// end of the connection is the end of the body.
	bare := x.is10 && resp.Header.ContentLength() < 0
	if bare {
		resp.Header.Del(fasthttp.HeaderTransferEncoding)
		resp.Header.SetContentLength(-2)
		resp.Header.SetConnectionClose()
	}
	s.complete(x, resp)
	runtime.Gosched() // streams take their time: let the successor lead
	w := bufio.NewWriterSize(&blocking{x: x}, 4096)
	err := writeStream(w, resp, bare)
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		// The client cannot tell a cut answer from a complete one unless the
		// connection ends.
		c.mark |= broken
	}
}

func writeStream(w *bufio.Writer, resp *fasthttp.Response, bare bool) error {
	if !bare {
		return resp.Write(w)
	}
	if err := resp.Header.Write(w); err != nil {
		_ = resp.CloseBodyStream()
		return err
	}
	if resp.SkipBody {
		return resp.CloseBodyStream()
	}
	return resp.BodyWriteTo(w)
}

// blocking writes to the connection of a request that was offloaded and waits
// for the client where it must.
type blocking struct{ x *exchange }

// Write implements io.Writer.
func (b *blocking) Write(p []byte) (int, error) {
	c, l := b.x.conn, b.x.loop
	if len(c.out) > 0 {
		pending := c.out
		c.out = nil
		if _, err := b.Write(pending); err != nil {
			return 0, err
		}
	}
	sent := 0
	for sent < len(p) {
		n, errno := l.sys.send(int(c.fd), p[sent:])
		switch errno {
		case 0:
			sent += n
		case syscall.EINTR:
		case syscall.EAGAIN:
			if err := b.wait(); err != nil {
				return sent, err
			}
		default:
			return sent, os.NewSyscallError("send", errno)
		}
	}
	return sent, nil
}

// wait returns when the socket may take more.
func (b *blocking) wait() error {
	c, l := b.x.conn, b.x.loop
	if c.drain.Load() == nil {
		ch := make(chan struct{}, 1)
		c.drain.Store(&ch)
	}
	// Asking again has epoll look again, so readiness that came before the
	// channel was there is reported too.
	c.mark |= wanted
	l.poller.want(int(c.fd), c.slot, c.gen)
	var expired <-chan time.Time
	if d := l.srv.WriteTimeout; d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		expired = t.C
	}
	select {
	case <-*c.drain.Load():
		return nil
	case <-expired:
		return os.ErrDeadlineExceeded
	}
}
