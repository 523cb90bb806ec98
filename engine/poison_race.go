//go:build race

package engine

import "github.com/valyala/fasthttp"

// poison fills a released ctx with bytes that no client sends, so that a
// handler that kept a reference to its request shows up in tests.
func poison(ctx *fasthttp.RequestCtx) {
	const filler = "released-released-released-released-released-released-released"
	ctx.Request.Header.SetRequestURI(filler)
	ctx.Request.Header.SetHost(filler)
	ctx.Request.Header.SetMethod(filler)
	ctx.Request.SetBodyString(filler)
	ctx.Response.SetBodyString(filler)
	ctx.Request.Reset()
	ctx.Response.Reset()
}
