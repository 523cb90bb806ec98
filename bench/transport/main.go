// Command transport serves the same three routes on one of several transports,
// for the paired measurements of this directory:
//
//	/api/ping   a fixed answer, inline where the transport can
//	/sleep      the same after 1 ms
//	/stats      memory and counters
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"pinion/engine"
)

func main() {
	transport := flag.String("transport", "loop", "loop, blocking (loop without NonBlocking), fasthttp")
	addr := flag.String("addr", "127.0.0.1:8080", "")
	loops := flag.Int("loops", 0, "")
	profile := flag.String("cpuprofile", "", "")
	seconds := flag.Duration("for", 0, "end after this time; 0 = never")
	flag.Parse()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			log.Fatal(err)
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			log.Fatal(err)
		}
		defer pprof.StopCPUProfile()
	}
	go func() {
		if err := serve(*transport, *addr, *loops); err != nil {
			log.Fatal(err)
		}
	}()
	if *seconds > 0 {
		time.Sleep(*seconds)
		return
	}
	select {}
}

func serve(transport, addr string, loops int) error {
	body := []byte(`{"status":"ok"}`)
	r := router.New()
	r.GET("/api/ping", func(ctx *fasthttp.RequestCtx) {
		ctx.SetContentType("application/json")
		ctx.Response.AppendBody(body)
	})
	r.GET("/sleep", func(ctx *fasthttp.RequestCtx) {
		engine.MayBlock(ctx)
		time.Sleep(time.Millisecond)
		ctx.SetContentType("application/json")
		ctx.Response.AppendBody(body)
	})
	r.GET("/block", func(ctx *fasthttp.RequestCtx) {
		engine.MayBlock(ctx)
		ctx.SetContentType("application/json")
		ctx.Response.AppendBody(body)
	})
	r.GET("/stats", func(ctx *fasthttp.RequestCtx) {
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Fprintf(ctx, "mallocs %d\nheap %d\ngoroutines %d\n", m.Mallocs, m.HeapInuse, runtime.NumGoroutine())
	})
	switch transport {
	case "loop", "blocking":
		s := &engine.Server{
			Handler: r.Handler, NonBlocking: transport == "loop", Loops: loops, Name: "pinion",
			ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		}
		return s.ListenAndServe(addr)
	case "fasthttp":
		s := &fasthttp.Server{
			Handler: r.Handler, Name: "pinion",
			ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		}
		return s.ListenAndServe(addr)
	}
	return errors.New("unknown transport")
}
