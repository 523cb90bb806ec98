package handlers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"pinion/ctxpool"
	"pinion/internal/stats"
	"pinion/users"
)

const (
	// MaxBodyBytes is the largest request body any endpoint takes. A transport
	// in front of the API should refuse more by itself, before it has read it.
	MaxBodyBytes = 64 << 10

	// MaxQueryIDs is how many ids GET /api/users?ids= takes.
	MaxQueryIDs = 256

	// MaxLookupIDs is how many ids POST /api/users/lookup takes.
	MaxLookupIDs = 1000

	// MaxAnswerBytes bounds the answer to a question for many users. A
	// thousand ordinary ones have 400 KiB; only users that were made to be
	// large come near.
	MaxAnswerBytes = 16 << 20

	// MaxActiveLimit is the largest limit of GET /api/users/active.
	MaxActiveLimit = 200

	// MaxActiveCities is how many cities one query for active users may name:
	// each is a range scan of its own.
	MaxActiveCities = 32

	defaultActiveLimit    = 50
	defaultRequestTimeout = 5 * time.Second
)

// Options is what an API is built from. Only Users is required.
type Options struct {
	// Users answers the questions. Required.
	Users *users.Service

	// Ready decides what /ready says: 200 for nil, else 503 with the error's
	// text, which the caller sees. Default nil: always ready.
	Ready func(context.Context) error

	// Tokens may write. Default nil: every write is refused with 403.
	Tokens *Tokens

	// RequestTimeout bounds a request that has to ask a source; the caller's
	// X-Request-Timeout-Ms may only shorten it. Default 5 s.
	RequestTimeout time.Duration

	// MayBlock is called just before a request asks a source, on the goroutine
	// it is served on. A transport that runs handlers on its loops needs to
	// know: package engine has MayBlock for it. Default nil: nothing.
	MayBlock func(*fasthttp.RequestCtx)

	// Context returns the context of what a request asks; engine.Context ends
	// when the client leaves. Default nil: context.Background().
	Context func(*fasthttp.RequestCtx) context.Context

	// Shard returns a number that requests on the same CPU share, for counters
	// and pools: that of the loop. Default nil: the connection's id.
	Shard func(*fasthttp.RequestCtx) uint64

	// AccessLog may be nil.
	AccessLog AccessLog

	// Stats receives http_server_request_duration_seconds and
	// http_server_panics_total, for the private port of pinion's own binary.
	// Default: a registry nobody reads.
	Stats *stats.Registry

	// Logger tells of panics and of errors behind a 500. Default
	// slog.Default().
	Logger *slog.Logger
}

// API answers the URLs of pinion. It is safe for concurrent use.
type API struct {
	users   *users.Service
	tokens  *Tokens
	timeout time.Duration
	log     *slog.Logger

	readiness func(context.Context) error
	mayBlock  func(*fasthttp.RequestCtx)
	context   func(*fasthttp.RequestCtx) context.Context
	shard     func(*fasthttp.RequestCtx) uint64

	router   *router.Router
	user     *resource // /api/users/{id}, the one matched before the router
	scratch  *ctxpool.Pool[scratch]
	observe  observer
	failures everySecond // limits the log lines of failed requests

	notFound, notAllowed, badRequest outsiders

	statusOK []byte // the body of ping and health
}

// errNoUsers is a programming error of the embedder.
var errNoUsers = errors.New("handlers: Options.Users is required")

// New builds the API. It fails only when a required option is missing.
func New(o Options) (*API, error) {
	if o.Users == nil {
		return nil, errNoUsers
	}
	if o.RequestTimeout <= 0 {
		o.RequestTimeout = defaultRequestTimeout
	}
	if o.Stats == nil {
		o.Stats = stats.NewRegistry(1)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.MayBlock == nil {
		o.MayBlock = func(*fasthttp.RequestCtx) {}
	}
	if o.Context == nil {
		o.Context = func(*fasthttp.RequestCtx) context.Context { return context.Background() }
	}
	if o.Shard == nil {
		o.Shard = (*fasthttp.RequestCtx).ConnID
	}
	a := &API{
		users:     o.Users,
		tokens:    o.Tokens,
		timeout:   o.RequestTimeout,
		log:       o.Logger,
		readiness: o.Ready,
		mayBlock:  o.MayBlock,
		context:   o.Context,
		shard:     o.Shard,
		scratch:   newScratchPool(),
		observe:   newObserver(o.Stats, o.AccessLog),
		statusOK:  []byte(`{"status":"ok"}`),
	}
	a.route()
	return a, nil
}

// Serve answers one request. It is a [fasthttp.RequestHandler].
func (a *API) Serve(ctx *fasthttp.RequestCtx) {
	if id, ok := userPath(ctx.Request.Header.RequestURI()); ok {
		a.dispatch(ctx, a.user, id)
		return
	}
	a.router.Handler(ctx)
}
