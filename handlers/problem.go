package handlers

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"pinion/codec"
	"pinion/users"
)

const (
	contentJSON    = "application/json"
	contentProblem = "application/problem+json"

	headerRequestID = "X-Request-Id"
	headerTimeout   = "X-Request-Timeout-Ms"
)

// problem is an answer that is an error: what RFC 9457 calls a problem
// detail. Its type is always about:blank, so its title is the status phrase.
type problem struct {
	status int
	detail string // for the client; never an internal message

	// One more header, where the status asks for one.
	header, value string
}

func (p *problem) Error() string { return p.detail }

func badRequest(detail string) *problem {
	return &problem{status: fasthttp.StatusBadRequest, detail: detail}
}

// The errors of the URL surface itself.
var (
	errNotFound   = &problem{status: fasthttp.StatusNotFound, detail: "there is nothing at this path"}
	errNotAllowed = &problem{status: fasthttp.StatusMethodNotAllowed, detail: "this path does not take this method; see Allow"}
	errMalformed  = badRequest("the request is not valid HTTP")
	errLate       = &problem{status: fasthttp.StatusGatewayTimeout, detail: "the answer did not come within the time this request had"}
	errKeyReused  = &problem{
		status: fasthttp.StatusUnprocessableEntity,
		detail: headerIdempotencyKey + " was sent before with another body",
	}
	errStored = &problem{
		status: fasthttp.StatusServiceUnavailable, header: fasthttp.HeaderRetryAfter, value: "1",
		detail: "this write is stored, but could not be read back",
	}
	errUnknownOutcome = &problem{
		status: fasthttp.StatusServiceUnavailable, header: fasthttp.HeaderRetryAfter, value: "1",
		detail: "it is not known whether this write was stored: read before you send it again, or send it with the same " + headerIdempotencyKey,
	}
	errBadID = badRequest("an id is a positive 64-bit integer in plain digits")
)

// problemOf is the one place that decides which status an error becomes.
// Everything it does not know is a 500 that says nothing.
func problemOf(err error) *problem {
	var (
		p      *problem
		field  *users.FieldError
		syntax *codec.SyntaxError
		typ    *codec.TypeError
	)
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, users.ErrNotFound):
		return &problem{status: fasthttp.StatusNotFound, detail: "there is no such user"}
	case errors.Is(err, users.ErrStored):
		return errStored
	case errors.Is(err, users.ErrKeyReused):
		return errKeyReused
	case errors.Is(err, users.ErrUnknownOutcome):
		return errUnknownOutcome
	case errors.As(err, &field):
		return badRequest(field.Error())
	case errors.As(err, &syntax):
		return badRequest("the body is not valid JSON: " + syntax.Error())
	case errors.As(err, &typ):
		return badRequest(typ.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return errLate
	case errors.Is(err, users.ErrUnavailable), errors.Is(err, context.Canceled):
		return &problem{
			status: fasthttp.StatusServiceUnavailable, detail: "a source of this answer cannot be reached; try again",
			header: fasthttp.HeaderRetryAfter, value: "1",
		}
	}
	return &problem{status: fasthttp.StatusInternalServerError, detail: "the server failed; the request id finds the reason in its log"}
}

// fail writes err as the answer, whatever the endpoint had written before, and
// logs what the server is to blame for.
func (a *API) fail(ctx *fasthttp.RequestCtx, err error) {
	p := problemOf(err)
	a.tellFailure(ctx, p.status, err)
	a.writeProblem(ctx, p)
}

// writeProblem writes p as the answer.
func (a *API) writeProblem(ctx *fasthttp.RequestCtx, p *problem) {
	id := requestID(ctx)
	r := &ctx.Response
	r.ResetBody()
	r.SetStatusCode(p.status)
	r.Header.SetContentType(contentProblem)
	r.Header.SetBytesV(headerRequestID, id)
	if p.header != "" {
		r.Header.Set(p.header, p.value)
	}
	body := r.SwapBody(nil)
	body = append(body, `{"type":"about:blank","title":`...)
	body = codec.AppendString(body, fasthttp.StatusMessage(p.status))
	body = append(body, `,"status":`...)
	body = strconv.AppendInt(body, int64(p.status), 10)
	body = append(body, `,"detail":`...)
	body = codec.AppendString(body, p.detail)
	body = append(body, `,"request_id":`...)
	body = codec.AppendString(body, id)
	body = append(body, '}')
	r.SwapBody(body)
}

// Overload is what to send to a connection that is one too many, with 503 or,
// if they are too many from one address, 429: a whole response, after which the
// connection is closed. It is for listeners that count (engine.Server.Overload);
// fasthttp.Server has no place for it.
func (a *API) Overload(status int) []byte {
	var ctx fasthttp.RequestCtx
	ctx.Response.Header.SetServer("pinion")
	a.writeProblem(&ctx, &problem{
		status: status, detail: "this server has as many connections as it takes",
		header: fasthttp.HeaderRetryAfter, value: "1",
	})
	ctx.SetConnectionClose()
	var b bytes.Buffer
	_, _ = ctx.Response.WriteTo(&b) // a buffer does not fail
	return b.Bytes()
}

// ServeError answers a request that the transport could not read. It belongs
// in fasthttp.Server.ErrorHandler; the transport closes the connection.
func (a *API) ServeError(ctx *fasthttp.RequestCtx, err error) {
	// What could not be read has no method and no path, although fasthttp's
	// defaults would say GET /.
	parsed := len(ctx.Request.Header.RawHeaders()) > 0
	e := a.badRequest.other()
	if parsed {
		e = a.badRequest.pick(ctx)
	}
	a.writeProblem(ctx, transportProblem(err)) // no fault of ours, so not logged
	// Not ctx.Time: it still is that of the connection's request before.
	a.finish(ctx, e, ending{start: time.Now(), parsed: parsed})
}

// Refusal is an error of a transport that says how to answer it, as those of
// package engine do.
type Refusal interface {
	error
	HTTPStatus() int
	// HTTPReason is for the client: it must not quote the request.
	HTTPReason() string
}

// transportProblem maps the errors of a transport while it reads.
func transportProblem(err error) *problem {
	var (
		refusal Refusal
		small   *fasthttp.ErrSmallBuffer
		timeout interface{ Timeout() bool }
		status  int
	)
	switch {
	case errors.As(err, &refusal):
		status = refusal.HTTPStatus()
	case errors.As(err, &small):
		status = fasthttp.StatusRequestHeaderFieldsTooLarge
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		status = fasthttp.StatusRequestEntityTooLarge
	case errors.As(err, &timeout) && timeout.Timeout():
		status = fasthttp.StatusRequestTimeout
	}
	switch status {
	case fasthttp.StatusRequestHeaderFieldsTooLarge:
		return &problem{status: status, detail: "the head of the request is too large"}
	case fasthttp.StatusRequestEntityTooLarge:
		return errBodyTooLarge()
	case fasthttp.StatusRequestTimeout:
		return &problem{status: status, detail: "the request did not arrive in time"}
	case 0:
		return errMalformed
	}
	return &problem{status: status, detail: "the request was refused: " + refusal.HTTPReason()}
}

func errBodyTooLarge() *problem {
	return &problem{
		status: fasthttp.StatusRequestEntityTooLarge,
		detail: "a body may have at most " + strconv.Itoa(MaxBodyBytes) + " bytes",
	}
}
