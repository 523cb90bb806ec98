package handlers

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"pinion/codec"
	"pinion/users"
)

// limit is how long a request may take, and who said so.
type limit struct {
	time     time.Duration
	byCaller bool
}

// limit returns the time the request has: Options.RequestTimeout or, if that is
// shorter, the caller's X-Request-Timeout-Ms. It is asked for before the cache
// is, so that a bad header is refused whether or not the answer is cached.
func (a *API) limit(ctx *fasthttp.RequestCtx) (limit, error) {
	text := ctx.Request.Header.Peek(headerTimeout)
	if len(text) == 0 {
		return limit{time: a.timeout}, nil
	}
	ms, err := strconv.ParseUint(codec.StringView(text), 10, 63)
	if err != nil {
		return limit{}, badRequest(headerTimeout + " must be a whole number of milliseconds")
	}
	// Compared before it is multiplied: a huge number must not wrap.
	if ms >= uint64(a.timeout.Milliseconds()) {
		return limit{time: a.timeout}, nil
	}
	return limit{time: time.Duration(ms) * time.Millisecond, byCaller: true}, nil
}

// within runs work that has to ask a source, under a context that ends when
// parent does, and with the request's time, counted from when the transport had
// read the request.
func (l limit) within(parent context.Context, ctx *fasthttp.RequestCtx, work func(context.Context) error) error {
	var cause error
	if l.byCaller {
		cause = users.ErrCallerDeadline
	}
	c, cancel := context.WithDeadlineCause(parent, ctx.Time().Add(l.time), cause)
	defer cancel()
	err := work(c)
	if l.byCaller && errors.Is(err, context.DeadlineExceeded) {
		return errLate
	}
	return err
}

// read runs work that ends when the client leaves: nobody wants its answer.
func (a *API) read(ctx *fasthttp.RequestCtx, l limit, work func(context.Context) error) error {
	a.mayBlock(ctx)
	return l.within(a.context(ctx), ctx, work)
}

// ask is limit and read for an endpoint that has nothing cached to answer.
func (a *API) ask(ctx *fasthttp.RequestCtx, work func(context.Context) error) error {
	l, err := a.limit(ctx)
	if err != nil {
		return err
	}
	return a.read(ctx, l, work)
}

// write runs work that goes on when the client leaves: it has said what it
// wants.
func (a *API) write(ctx *fasthttp.RequestCtx, work func(context.Context) error) error {
	l, err := a.limit(ctx)
	if err != nil {
		return err
	}
	a.mayBlock(ctx)
	return l.within(context.Background(), ctx, work)
}
