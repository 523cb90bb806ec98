// Command gnet is the peer "gnet": as much of HTTP/1.1 as these routes need, on gnet's
// event loops. It runs one loop for each CPU (WithMulticore), and what blocks on gnet's own
// pool of goroutines, as its documentation has it. gnet knows no timeouts and no HTTP: a
// server that is fit for a network has more to do than this one.
package main

import (
	"context"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/panjf2000/gnet/v2"
	"github.com/panjf2000/gnet/v2/pkg/logging"
	"github.com/panjf2000/gnet/v2/pkg/pool/goroutine"

	"pinion/bench/peers/work"
)

func main() { os.Exit(work.Run(serve)) }

func serve(ctx context.Context, c work.Config) error {
	s := &server{ctx: ctx, api: api{users: c.Users, ok: []byte(work.OK)}}
	return gnet.Run(s, "tcp://"+c.Addr, gnet.WithMulticore(true), gnet.WithTicker(true), gnet.WithLogLevel(logging.ErrorLevel))
}

type server struct {
	gnet.BuiltinEventEngine
	ctx  context.Context // ends the server
	api  api
	date atomic.Pointer[string]
}

// conn is the state of one connection. Only its event loop touches it.
type conn struct {
	out  []byte
	away bool // a request is on the pool; what comes after it waits
}

// OnBoot implements gnet.EventHandler.
func (s *server) OnBoot(e gnet.Engine) gnet.Action {
	s.tick()
	context.AfterFunc(s.ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), work.StopTimeout)
		defer cancel()
		_ = e.Stop(ctx) // Run tells
	})
	return gnet.None
}

// OnTick implements gnet.EventHandler: it keeps the Date header right.
func (s *server) OnTick() (time.Duration, gnet.Action) {
	s.tick()
	return time.Second / 2, gnet.None
}

func (s *server) tick() {
	now := time.Now().UTC().Format(http.TimeFormat)
	s.date.Store(&now)
}

// OnOpen implements gnet.EventHandler.
func (*server) OnOpen(c gnet.Conn) ([]byte, gnet.Action) {
	c.SetContext(new(conn))
	return nil, gnet.None
}

// OnTraffic implements gnet.EventHandler: it answers all requests that have arrived whole
// with one write.
func (s *server) OnTraffic(c gnet.Conn) gnet.Action {
	state := c.Context().(*conn)
	if state.away {
		return gnet.None
	}
	in, err := c.Peek(-1)
	if err != nil {
		return gnet.Close
	}
	state.out = state.out[:0]
	read, action := 0, gnet.None
	for action == gnet.None && !state.away {
		req, n, err := parse(in[read:])
		if err != nil {
			state.out = appendAnswer(state.out, *s.date.Load(), answer{status: http.StatusBadRequest}, true)
			action = gnet.Close
		}
		if n == 0 {
			break // not all of it is there
		}
		read += n
		if string(req.path) == "/sleep" && string(req.method) == "GET" {
			state.away = true
			s.sleep(c, state, req.close)
			break
		}
		state.out = appendAnswer(state.out, *s.date.Load(), s.api.answer(req), req.close)
		if req.close {
			action = gnet.Close
		}
	}
	if read > 0 {
		_, _ = c.Discard(read) // all of it is there
	}
	if len(state.out) > 0 {
		if _, err := c.Write(state.out); err != nil {
			return gnet.Close
		}
	}
	return action
}

// sleep answers from a goroutine of the pool, and then lets the loop go on with the
// requests that came in the meantime.
func (s *server) sleep(c gnet.Conn, state *conn, last bool) {
	task := func() {
		time.Sleep(work.Nap)
		b := appendAnswer(nil, *s.date.Load(), answer{status: http.StatusOK, body: s.api.ok}, last)
		_ = c.AsyncWrite(b, func(c gnet.Conn, err error) error { // on the loop
			state.away = false
			if err != nil || last {
				return c.Close()
			}
			if c.InboundBuffered() > 0 {
				return c.Wake(nil)
			}
			return nil
		})
	}
	if err := goroutine.DefaultWorkerPool.Submit(task); err != nil {
		_ = c.Close() // the pool has no goroutine left
	}
}
