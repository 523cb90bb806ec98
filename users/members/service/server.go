package service

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"pinion/codec"
	"pinion/users"
	"pinion/users/members"
)

// Members says who is a member, and what is known of one. It is called concurrently.
type Members func(id int64) (users.Member, bool)

// Server is the service. It is safe for concurrent use.
type Server struct {
	members  Members
	http     fasthttp.Server
	requests atomic.Uint64
	ids      atomic.Uint64

	mu   sync.Mutex
	mode *mode
}

// mode is the knobs of now; changed is closed when others take their place.
type mode struct {
	knobs   Knobs
	changed chan struct{}
}

// New returns a service that behaves well until SetKnobs says otherwise.
func New(m Members) *Server {
	s := &Server{members: m, mode: &mode{changed: make(chan struct{})}}
	s.http = fasthttp.Server{
		Handler:               s.handle,
		Name:                  "members",
		ReadBufferSize:        16 << 10, // 256 ids of 20 bytes do not fit the default
		ReadTimeout:           10 * time.Second,
		WriteTimeout:          10 * time.Second,
		IdleTimeout:           time.Minute,
		CloseOnShutdown:       true,
		NoDefaultContentType:  true,
		SecureErrorLogMessage: true,
		Logger:                logger{},
	}
	return s
}

// Serve answers on ln until Shutdown.
func (s *Server) Serve(ln net.Listener) error { return s.http.Serve(ln) }

// Shutdown stops listening, answers with 503 whoever hangs or sleeps, and waits for the
// rest until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	s.turn(Knobs{})
	return s.http.ShutdownWithContext(ctx)
}

// SetKnobs changes the behaviour from now on. Knobs that Check refuses change nothing.
func (s *Server) SetKnobs(k Knobs) error {
	if err := k.Check(); err != nil {
		return err
	}
	s.turn(k)
	return nil
}

func (s *Server) turn(k Knobs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.mode.changed)
	s.mode = &mode{knobs: k, changed: make(chan struct{})}
}

func (s *Server) current() *mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode
}

// Requests counts the requests so far, and the ids in those that were well formed.
func (s *Server) Requests() (requests, ids uint64) { return s.requests.Load(), s.ids.Load() }

func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	s.requests.Add(1)
	if string(ctx.Path()) != "/members" {
		ctx.Error("there is only /members", fasthttp.StatusNotFound)
		return
	}
	if !ctx.IsGet() {
		ctx.Response.Header.Set("Allow", "GET")
		ctx.Error("want GET", fasthttp.StatusMethodNotAllowed)
		return
	}
	ids, ok := parseIDs(ctx.QueryArgs().Peek("ids"))
	if !ok {
		ctx.Error("want ids=1,2,3 with 1 to 256 positive numbers", fasthttp.StatusBadRequest)
		return
	}
	s.ids.Add(uint64(len(ids)))

	m := s.current()
	what := m.knobs.pick()
	if !m.wait(what) {
		ctx.Error("interrupted", fasthttp.StatusServiceUnavailable)
		return
	}
	if what == failed {
		ctx.Error("failed, as asked for", fasthttp.StatusInternalServerError)
		return
	}
	ctx.SetContentType("application/json")
	if what == garbled {
		ctx.SetBodyString(`{"members":[{"id":"` + "\xff" + `",]}`)
		return
	}
	ctx.SetBody(s.appendAnswer(nil, ids))
}

// wait reports whether the time of a request has come, and not the end of its knobs.
func (m *mode) wait(what fate) bool {
	var due <-chan time.Time
	if what != hung {
		d := m.knobs.delay()
		if d <= 0 {
			return true
		}
		t := time.NewTimer(d)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-due:
		return true
	case <-m.changed:
		return false
	}
}

func parseIDs(text []byte) ([]int64, bool) {
	if bytes.Count(text, []byte(",")) >= members.MaxIDs {
		return nil, false
	}
	var ids []int64
	for part := range bytes.SplitSeq(text, []byte(",")) {
		id, ok := codec.ParseID(part)
		if !ok {
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, true
}

func (s *Server) appendAnswer(dst []byte, ids []int64) []byte {
	var none []int64
	dst = append(dst, `{"members":[`...)
	first := true
	for _, id := range ids {
		m, ok := s.members(id)
		if !ok {
			none = append(none, id)
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, `{"id":`...)
		dst = codec.AppendInt(dst, id)
		dst = append(dst, `,"level":`...)
		dst = codec.AppendString(dst, m.Level)
		dst = append(dst, `,"points":`...)
		dst = codec.AppendInt(dst, m.Points)
		dst = append(dst, '}')
	}
	dst = append(dst, `],"none":[`...)
	for i, id := range none {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = codec.AppendInt(dst, id)
	}
	return append(dst, "]}"...)
}

// logger passes on what fasthttp has to say, which is little.
type logger struct{}

// Printf implements fasthttp.Logger.
func (logger) Printf(format string, args ...any) { slog.Debug("members: "+format, "args", args) }
