package rediscache

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pinion/users"
)

// relay passes bytes to and from a server, and can put others in their place.
type relay struct {
	net.Listener
	upstream string
	instead  atomic.Pointer[string] // of every answer
	infos    atomic.Int64           // INFO commands
	info     atomic.Int32           // what becomes of them

	wg    sync.WaitGroup
	mu    sync.Mutex
	conns map[net.Conn]struct{} // to clients
}

// What a relay does with an INFO.
const (
	infoPass = iota
	infoSwallow
	infoCut // the connection
)

func startRelay(t *testing.T, upstream string) *relay {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: ln, upstream: upstream, conns: make(map[net.Conn]struct{})}
	r.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			r.wg.Go(func() { r.pass(c) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		r.cut()
		r.wg.Wait()
	})
	return r
}

func (r *relay) pass(client net.Conn) {
	server, err := net.Dial("tcp", r.upstream)
	if err != nil {
		_ = client.Close()
		return
	}
	r.mu.Lock()
	r.conns[client] = struct{}{}
	r.mu.Unlock()
	r.wg.Go(func() {
		defer func() { _ = server.Close() }()
		buf := make([]byte, 64<<10)
		for {
			n, err := client.Read(buf)
			if err != nil {
				return
			}
			if bytes.Contains(buf[:n], []byte("$4\r\nINFO\r\n")) {
				r.infos.Add(1)
				switch r.info.Load() {
				case infoSwallow:
					continue
				case infoCut:
					return
				}
			}
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if err != nil {
			break
		}
		answer := string(buf[:n])
		if text := r.instead.Load(); text != nil {
			answer = *text
		}
		if _, err := io.WriteString(client, answer); err != nil {
			break
		}
	}
	_ = client.Close()
	_ = server.Close()
	r.mu.Lock()
	delete(r.conns, client)
	r.mu.Unlock()
}

// cut ends all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		_ = c.Close()
	}
}

// inject sends text to all clients, which have not asked for it.
func (r *relay) inject(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		_, _ = io.WriteString(c, text)
	}
}

// TestGarbage has Redis talk nonsense: unasked, and instead of its answers. The process
// must live, nothing wrong may come out, and all must be well afterwards.
func TestGarbage(t *testing.T) {
	s := shared(t)
	direct, _ := run(t, Options{URL: s.DSN()})
	const json = `{"id":1}`
	store(t, direct, users.SharedEntry{ID: 1, Lease: lease(t, direct, 1), JSON: []byte(json)})
	r := startRelay(t, s.Addr())
	c, n := run(t, Options{URL: "redis://" + r.Addr().String(), Timeout: time.Second})

	look := func(what string) bool {
		found, err := c.Lookup(context.Background(), []int64{1})
		if err == nil && found[0].State != users.SharedMiss && string(found[0].JSON) != json {
			t.Errorf("%.40q: got %+v", what, found[0])
		}
		return err == nil && found[0].State == users.SharedUser
	}
	well := func(what string) {
		t.Helper()
		within(t, recovery, what+": tracking is on again", n.tracking)
		eventually(t, what+": it works again", func() bool { return look(what) })
	}
	// What is proper on the wire, but no answer to what was asked.
	odd := []string{
		"+OK\r\n", ":1\r\n", "_\r\n", "-ERR odd\r\n", "*0\r\n", "%0\r\n", "*1\r\n$1\r\nx\r\n", "*2\r\n_\r\n_\r\n",
		"*2\r\n:1\r\n*1\r\n+x\r\n", "%1\r\n$5\r\nproto\r\n:3\r\n", "+QUEUED\r\n", "+OK\r\n+OK\r\n+OK\r\n+OK\r\n",
		">2\r\n$10\r\ninvalidate\r\n*1\r\n*0\r\n", ">2\r\n$10\r\ninvalidate\r\n*1\r\n$5\r\nother\r\n",
	}
	for _, text := range append(wrongStreams(), odd...) {
		r.inject(text)
		look(text)
		well("unasked " + text[:min(20, len(text))])
	}
	for _, text := range append(wrongStreams(), odd...) {
		r.instead.Store(&text)
		look(text)
		if _, err := c.Attributes(context.Background(), []int64{1}); err != nil && !errors.Is(err, ErrDown) && !strings.Contains(err.Error(), "user 1") {
			t.Errorf("%.40q: got %v", text, err)
		}
		r.instead.Store(nil)
		well("instead " + text[:min(20, len(text))])
	}
}
