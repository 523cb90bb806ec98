package handlers

import (
	"context"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"pinion/codec"
)

// deadline returns the context of the work behind a request that has to ask a
// source. It ends after Options.RequestTimeout or, if that is sooner, after the
// caller's X-Request-Timeout-Ms, both counted from the request's arrival.
func (a *API) deadline(ctx *fasthttp.RequestCtx) (context.Context, context.CancelFunc, error) {
	limit := a.timeout
	if text := ctx.Request.Header.Peek(headerTimeout); len(text) > 0 {
		ms, err := strconv.ParseUint(codec.StringView(text), 10, 63)
		if err != nil {
			return nil, nil, badRequest(headerTimeout + " must be a whole number of milliseconds")
		}
		// Compared before it is multiplied: a huge number must not wrap.
		if ms < uint64(limit.Milliseconds()) {
			limit = time.Duration(ms) * time.Millisecond
		}
	}
	c, cancel := context.WithDeadline(context.Background(), ctx.Time().Add(limit))
	return c, cancel, nil
}
