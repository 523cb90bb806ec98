// Command pinion is the peer "engine": pinion's event loops with fasthttp/router, its
// answers appended and its bodies read strictly by pinion's codec, as its own endpoints
// do it. Unlike the product it has all routes, and none of the product's middleware.
package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"pinion/bench/peers/work"
	"pinion/codec"
	"pinion/ctxpool"
	"pinion/engine"
)

func main() {
	loops := flag.Int("loops", 0, "event loops; 0: one for each CPU")
	os.Exit(work.Run(func(ctx context.Context, c work.Config) error { return serve(ctx, c, *loops) }))
}

func serve(ctx context.Context, c work.Config, loops int) error {
	a := newAPI(c.Users)
	r := router.New()
	r.GET("/api/ping", a.ping)
	r.GET("/sleep", a.sleep)
	r.GET("/json", a.order)
	r.POST("/json", a.purchase)
	r.GET("/api/users", a.find)
	s := &engine.Server{
		Handler: r.Handler, NonBlocking: true, Loops: loops, Name: "pinion",
		ReadTimeout: work.ReadTimeout, WriteTimeout: work.WriteTimeout, IdleTimeout: work.IdleTimeout,
	}
	done := make(chan error, 1)
	go func() { done <- s.ListenAndServe(c.Addr) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), work.StopTimeout)
	defer cancel()
	if err := s.Shutdown(stop); err != nil {
		return err
	}
	if err := <-done; !errors.Is(err, engine.ErrServerClosed) {
		return err
	}
	return nil
}

// api answers. None of its handlers blocks but sleep, which says so.
type api struct {
	users   map[int64]*user
	scratch *ctxpool.Pool[scratch]
}

// scratch is what one request needs and the next can use again.
type scratch struct {
	ids   []int64
	lines []work.Line
	json  codec.Decoder
}

func newAPI(store *work.Store) *api {
	a := &api{users: make(map[int64]*user, len(store.Users()))}
	for _, u := range store.Users() {
		a.users[u.ID] = newUser(u)
	}
	a.scratch = ctxpool.NewPool(0, func() *scratch { return new(scratch) }, func(s *scratch) { s.json.Reset() })
	return a
}

func (*api) ping(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("application/json")
	ctx.Response.AppendBodyString(work.OK)
}

func (a *api) sleep(ctx *fasthttp.RequestCtx) {
	engine.MayBlock(ctx)
	time.Sleep(work.Nap)
	a.ping(ctx)
}
