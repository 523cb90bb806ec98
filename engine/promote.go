package engine

import (
	"math"
	"net"
	"sync"

	"github.com/valyala/fasthttp"
)

// promoted is a connection that fasthttp.Server serves: it asked for an
// upgrade, is a CONNECT, or streams its request body.
type promoted struct {
	net.Conn
	server *Server
	head   []byte // read already
	addrs  *addresses
	once   sync.Once
}

// Read implements net.Conn.
func (p *promoted) Read(b []byte) (int, error) {
	if len(p.head) > 0 {
		n := copy(b, p.head)
		p.head = p.head[n:]
		if len(p.head) == 0 {
			p.head = nil
		}
		return n, nil
	}
	return p.Conn.Read(b)
}

// Close implements net.Conn.
func (p *promoted) Close() error {
	err := p.Conn.Close()
	p.once.Do(func() { p.server.demote(p) })
	return err
}

// promote hands a connection and the bytes read of it to fasthttp.Server. It
// serves one request there, or a hijack as long as that takes: what follows a
// promoted request in the stream would meet a parser that is less strict.
func (l *loop) promote(c *conn, b []byte) {
	s := l.srv
	head := append([]byte(nil), b...)
	l.poller.forget(int(c.fd))
	nc, err := l.sys.detach(int(c.fd))
	l.remove(c)
	if err != nil {
		s.logf("%v", err)
		s.release(c.addrs)
		return
	}
	l.count.promoted++
	p := &promoted{Conn: nc, server: s, head: head, addrs: c.addrs}
	s.mu.Lock()
	s.promotedConns[p] = struct{}{}
	fallback := s.fallback()
	late := s.stopping.Load() == stopForced // closePromoted may have run
	s.mu.Unlock()
	if late {
		_ = p.Close()
		return
	}
	s.promotions.Add(1)
	go func() {
		defer s.promotions.Done()
		_ = fallback.ServeConn(p) // clients can break as many connections as they like
	}()
}

// demote forgets a promoted connection that was closed.
func (s *Server) demote(p *promoted) {
	s.mu.Lock()
	delete(s.promotedConns, p)
	s.mu.Unlock()
	s.release(p.addrs)
}

// closePromoted closes the connections that fasthttp.Server or a hijack still
// serves.
func (s *Server) closePromoted() {
	s.mu.Lock()
	conns := make([]*promoted, 0, len(s.promotedConns))
	for p := range s.promotedConns {
		conns = append(conns, p)
	}
	s.mu.Unlock()
	for _, p := range conns {
		_ = p.Close()
	}
}

// fallback returns the server of promoted connections. The caller holds s.mu.
func (s *Server) fallback() *fasthttp.Server {
	if s.fasthttp == nil {
		s.fasthttp = &fasthttp.Server{
			Handler:               s.recovering,
			ErrorHandler:          s.ErrorHandler,
			Logger:                s.logger(),
			Name:                  s.Name,
			NoDefaultServerHeader: s.Name == "",
			NoDefaultContentType:  s.NoDefaultContentType,
			ReadBufferSize:        s.limits.head,
			ReadTimeout:           s.ReadTimeout,
			WriteTimeout:          s.WriteTimeout,
			MaxRequestBodySize:    int(s.limits.body),
			StreamRequestBody:     s.StreamRequestBody,
			Concurrency:           math.MaxInt32, // MaxConns holds at the door
			DisableKeepalive:      true,
		}
	}
	return s.fasthttp
}

// recovering runs the handler of a promoted request; fasthttp.Server would let
// a panic end the process.
func (s *Server) recovering(ctx *fasthttp.RequestCtx) {
	defer func() {
		if r := recover(); r != nil {
			s.logf("engine: handler panicked: %v", r)
			ctx.Error(errPanicked.Reason, errPanicked.Status)
			ctx.SetConnectionClose()
		}
	}()
	s.Handler(ctx)
}
