package engine_test

import (
	"context"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/valyala/fasthttp"

	"pinion/engine"
)

func Example() {
	s := &engine.Server{
		NonBlocking: true,
		Handler: func(ctx *fasthttp.RequestCtx) {
			if string(ctx.Path()) == "/ping" {
				ctx.SetBodyString("pong") // stays on the loop
				return
			}
			engine.MayBlock(ctx) // the loop goes on without us
			select {
			case <-time.After(10 * time.Millisecond): // a database
				ctx.SetBodyString("done")
			case <-engine.Context(ctx).Done():
				ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
			}
		},
		ReadTimeout: 10 * time.Second,
		IdleTimeout: time.Minute,
	}
	go func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, os.Interrupt)
		<-signals
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			log.Print(err)
		}
	}()
	log.Print(s.ListenAndServe(":8080"))
}

// A router with one route that never blocks: that one stays on the loop, the
// others are offloaded.
func ExampleNonBlocking() {
	ping := engine.NonBlocking(func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("pong") })
	s := &engine.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == "/ping" {
			ping(ctx)
			return
		}
		time.Sleep(time.Second)
	}}
	log.Print(s.ListenAndServe(":8080"))
}
