package handlers

import (
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
	if a.health != nil {
		work, cancel, err := a.deadline(ctx)
		if err != nil {
			return err
		}
		defer cancel()
		if err := a.health.Check(work); err != nil {
			return &problem{status: fasthttp.StatusServiceUnavailable, detail: err.Error()}
		}
	}
	return a.ping(ctx, 0)
}
