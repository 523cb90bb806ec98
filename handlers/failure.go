package handlers

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// tellFailure logs why a request failed. Each 500 is told, since its answer
// promises so; of the other failures, which come in thousands while a source is
// down, one a second.
func (a *API) tellFailure(ctx *fasthttp.RequestCtx, status int, err error) {
	level := slog.LevelError
	if status != fasthttp.StatusInternalServerError {
		// errLate itself is a caller that had too little time.
		if status < fasthttp.StatusInternalServerError || errors.Is(err, errLate) || !a.failures.allow(time.Now()) {
			return
		}
		level = slog.LevelWarn
	}
	a.log.LogAttrs(context.Background(), level, "request failed",
		slog.String("request_id", string(requestID(ctx))), slog.Int("status", status),
		slog.String("method", string(ctx.Method())), slog.String("error", err.Error()))
}

// everySecond lets one event a second through.
type everySecond struct{ last atomic.Int64 }

func (e *everySecond) allow(now time.Time) bool {
	last := e.last.Load()
	return now.Unix() != last && e.last.CompareAndSwap(last, now.Unix())
}
