package handlers_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/valyala/fasthttp"

	"pinion/handlers"
	"pinion/users"
	"pinion/users/sqldb"
)

// An edge process that runs fasthttp mounts the API beside its own paths.
func Example() {
	db, err := sqldb.Open(context.Background(), sqldb.Options{DSN: "sqlite::memory:"})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Fill(context.Background(), 10, nil); err != nil {
		log.Fatal(err)
	}
	service := users.NewService(users.Config{Rows: db, Attributes: db, Members: db})
	defer service.Close() // before the database

	tokens := new(handlers.Tokens) // who may write
	tokens.Allow("edge", "a secret")
	api, err := handlers.New(handlers.Options{Users: service, Ready: service.Ready, Tokens: tokens})
	if err != nil {
		log.Fatal(err)
	}

	edge := func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == "/edge" {
			ctx.SetBodyString("the edge's own")
			return
		}
		api.Serve(ctx)
	}
	server := fasthttp.Server{
		Name: "edge", Handler: edge, ErrorHandler: api.ServeError,
		ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		ReadBufferSize: 16 << 10, MaxRequestBodySize: handlers.MaxBodyBytes,
	}
	_ = &server // server.ListenAndServe(":8080")

	var ctx fasthttp.RequestCtx
	ctx.Init(&fasthttp.Request{}, nil, nil)
	ctx.Request.SetRequestURI("/api/users?ids=77")
	edge(&ctx)
	fmt.Println(ctx.Response.StatusCode(), string(ctx.Response.Body()))
	// Output: 200 {"users":[],"missing":[77]}
}
