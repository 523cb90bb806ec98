// Command fasthttp is the peer "fasthttp": its server with fasthttp/router and
// encoding/json. Bodies are given away with SetBodyRaw, not copied, as fasthttp's own
// documentation of that method has it.
//
// With -fragments it is the peer "fasthttp+fragments": users are encoded once, at the
// start, and a request for some joins theirs. This is what a cache of finished answers is
// worth to a server that has no other hand in it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"pinion/bench/peers/work"
)

func main() {
	fragments := flag.Bool("fragments", false, "encode users once, at the start")
	os.Exit(work.Run(func(ctx context.Context, c work.Config) error { return serve(ctx, c, *fragments) }))
}

func serve(ctx context.Context, c work.Config, fragments bool) error {
	a := api{users: c.Users}
	find := a.find
	if fragments {
		f, err := newFragments(c.Users)
		if err != nil {
			return err
		}
		find = f.find
	}
	r := router.New()
	r.GET("/api/ping", a.ping)
	r.GET("/sleep", a.sleep)
	r.GET("/json", a.order)
	r.POST("/json", a.purchase)
	r.GET("/api/users", find)
	s := &fasthttp.Server{
		Handler: r.Handler, Name: "fasthttp",
		ReadTimeout: work.ReadTimeout, WriteTimeout: work.WriteTimeout, IdleTimeout: work.IdleTimeout,
		// Idle connections are no reason to stay.
		CloseOnShutdown: true,
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
	if err := s.ShutdownWithContext(stop); err != nil {
		return err
	}
	return <-done
}

type api struct{ users *work.Store }

func (api) ping(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("application/json")
	ctx.SetBodyString(work.OK)
}

func (a api) sleep(ctx *fasthttp.RequestCtx) {
	time.Sleep(work.Nap)
	a.ping(ctx)
}

func (api) order(ctx *fasthttp.RequestCtx) {
	id, err := work.ParseID(string(ctx.QueryArgs().Peek("id")))
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusBadRequest)
		return
	}
	answer(ctx, work.NewOrder(id))
}

func (api) purchase(ctx *fasthttp.RequestCtx) {
	var p work.Purchase
	if err := json.Unmarshal(ctx.PostBody(), &p); err != nil {
		ctx.Error(err.Error(), fasthttp.StatusBadRequest)
		return
	}
	receipt, err := p.Receipt()
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusBadRequest)
		return
	}
	answer(ctx, receipt)
}

func (a api) find(ctx *fasthttp.RequestCtx) {
	ids, err := work.ParseIDs(nil, string(ctx.QueryArgs().Peek("ids")))
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusBadRequest)
		return
	}
	answer(ctx, a.users.Find(ids))
}

func answer(ctx *fasthttp.RequestCtx, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
		return
	}
	ctx.SetContentType("application/json")
	ctx.Response.SetBodyRaw(body)
}
