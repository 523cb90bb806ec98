package handlers

import (
	"context"

	"github.com/valyala/fasthttp"
)

// ping answers GET /api/ping and GET /health: the process serves.
func (a *API) ping(ctx *fasthttp.RequestCtx, _ int64) error {
	ctx.Response.Header.SetContentType(contentJSON)
	ctx.Response.SetBodyRaw(a.statusOK)
	return nil
}

// ready answers GET /ready: whether a load balancer should send requests.
func (a *API) ready(ctx *fasthttp.RequestCtx, _ int64) error {
	if a.readiness != nil {
		err := a.ask(ctx, func(work context.Context) error {
			if err := a.readiness(work); err != nil {
				return &problem{status: fasthttp.StatusServiceUnavailable, detail: err.Error()}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return a.ping(ctx, 0)
}
