package handlers

import (
	"fmt"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"pinion/internal/stats"
)

// observer measures and logs requests. Nothing in it takes a lock on the
// request path.
type observer struct {
	durations *stats.HistogramVec
	panics    *stats.Counter
	log       AccessLog
}

func newObserver(reg *stats.Registry, log AccessLog) observer {
	return observer{
		durations: reg.Histogram("http_server_request_duration_seconds",
			"Time from the whole request read to the answer built, in seconds.",
			[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
			"handler", "method", "status_code"),
		panics: reg.Counter("http_server_panics_total", "Handlers that panicked; each was answered with 500.").With(),
		log:    log,
	}
}

// statuses is how many three-digit codes there are from 100 on.
const statuses = 500

// series are the histograms of one endpoint, one per status, made when the
// status is first answered. 4 KiB of pointers buys a lookup without a lock or
// a hash.
type series struct {
	byStatus *[statuses]atomic.Pointer[stats.Histogram]
	make     func(status int) *stats.Histogram
}

func (o *observer) series(handler, method string) series {
	return series{
		byStatus: new([statuses]atomic.Pointer[stats.Histogram]),
		make: func(status int) *stats.Histogram {
			return o.durations.With(handler, method, strconv.Itoa(status))
		},
	}
}

func (s *series) observe(shard uint64, status int, d time.Duration) {
	i := status - 100
	if i < 0 || i >= statuses {
		return
	}
	h := s.byStatus[i].Load()
	if h == nil {
		h = s.make(status) // the same one for every racer
		s.byStatus[i].Store(h)
	}
	h.Observe(shard, d)
}

// run serves a request by e, from the panic net to the last measurement.
func (a *API) run(ctx *fasthttp.RequestCtx, e *endpoint, id int64) {
	defer a.recovered(ctx, e)
	var err error
	if e.needsID && id == 0 {
		err = errBadID
	} else {
		err = e.serve(ctx, id)
	}
	if err != nil {
		a.fail(ctx, err)
	}
	a.finish(ctx, e, ending{start: ctx.Time(), parsed: true})
}

// recovered turns a panic into a 500. fasthttp does not: there, one panicking
// handler ends the process.
func (a *API) recovered(ctx *fasthttp.RequestCtx, e *endpoint) {
	cause := recover()
	if cause == nil {
		return
	}
	// It may have come from the access log; then finish panics again.
	defer func() { _ = recover() }()
	a.observe.panics.Add(a.shard(ctx), 1)
	ctx.Response.Reset()
	a.fail(ctx, fmt.Errorf("handler %s panicked: %v\n%s", e.name, cause, debug.Stack()))
	// What the handler left half done is unknown: do not reuse the connection.
	ctx.SetConnectionClose()
	a.finish(ctx, e, ending{start: ctx.Time(), parsed: true, panicked: true})
}

// ending is what the request itself does not tell about its end.
type ending struct {
	start    time.Time
	parsed   bool // its head is known
	panicked bool
}

// finish measures and logs a request whose answer is built.
func (a *API) finish(ctx *fasthttp.RequestCtx, e *endpoint, end ending) {
	shard := a.shard(ctx)
	status := ctx.Response.StatusCode()
	took := time.Since(end.start)
	e.series.observe(shard, status, took)
	if a.observe.log == nil || !a.observe.log.Wants(shard, status) {
		return
	}
	s := a.scratch.Get(shard)
	defer a.scratch.Put(shard, s)
	s.entry = Entry{
		Time: end.start, Duration: took, Handler: e.name, Method: e.method, Status: status,
		RequestID: requestID(ctx), Bytes: len(ctx.Response.Body()), Remote: ctx.RemoteAddr(), Panic: end.panicked,
	}
	if end.parsed {
		s.entry.Path, s.entry.Query = ctx.Request.URI().PathOriginal(), ctx.Request.URI().QueryString()
	}
	a.observe.log.Record(shard, &s.entry)
}
