// Package websocket tests that a handler which upgrades its connection works on
// the event loops. It lives in this module because the product needs no WebSocket
// library.
package websocket

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"

	"pinion/engine"
)

const patience = 10 * time.Second

// TestEcho talks to a hijacking handler on several connections at once, while
// ordinary requests are served beside it.
func TestEcho(t *testing.T) {
	upgrader := websocket.FastHTTPUpgrader{ReadBufferSize: 1 << 10, WriteBufferSize: 1 << 10}
	s := &engine.Server{
		NonBlocking: true, Loops: 2, ReadTimeout: patience, IdleTimeout: patience,
		Handler: func(ctx *fasthttp.RequestCtx) {
			if string(ctx.Path()) != "/echo" {
				ctx.SetBodyString("plain")
				return
			}
			err := upgrader.Upgrade(ctx, func(c *websocket.Conn) {
				defer func() { _ = c.Close() }()
				for {
					kind, message, err := c.ReadMessage()
					if err != nil {
						return
					}
					if err := c.WriteMessage(kind, message); err != nil {
						return
					}
				}
			})
			if err != nil {
				t.Errorf("upgrade: %v", err)
			}
		},
	}
	lns, err := engine.Listen("127.0.0.1:0", 2)
	if err != nil {
		t.Fatal(err)
	}
	addr := lns[0].Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(lns...) }()

	var wg sync.WaitGroup
	for client := range 8 {
		wg.Go(func() { echo(t, addr, uint64(client)) })
	}
	wg.Wait()

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-ended; !errors.Is(err, engine.ErrServerClosed) {
		t.Errorf("Serve: %v", err)
	}
}

func echo(t *testing.T, addr string, seed uint64) {
	dialer := websocket.Dialer{HandshakeTimeout: patience}
	c, resp, err := dialer.Dial("ws://"+addr+"/echo", nil)
	if err != nil {
		t.Errorf("dial: %v", err)
		return
	}
	_ = resp.Body.Close()
	defer func() { _ = c.Close() }()
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Error(err)
		return
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range 200 {
		message := bytes.Repeat([]byte{byte(i), byte(seed)}, 1+rng.IntN(5000))
		if err := c.WriteMessage(websocket.BinaryMessage, message); err != nil {
			t.Errorf("message %d: %v", i, err)
			return
		}
		_, got, err := c.ReadMessage()
		if err != nil || !bytes.Equal(got, message) {
			t.Errorf("message %d of %d bytes: got %d bytes, %v", i, len(message), len(got), err)
			return
		}
		if i%50 == 0 {
			if status, body, err := fasthttp.GetTimeout(nil, "http://"+addr+"/", patience); err != nil || status != 200 || string(body) != "plain" {
				t.Errorf("beside it: %d %s %v", status, body, err)
				return
			}
		}
	}
}
