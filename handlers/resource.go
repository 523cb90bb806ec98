package handlers

import (
	"bytes"
	"strings"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"pinion/codec"
)

// serveFunc writes the answer of an endpoint, or returns an error that says
// which one to write. id is that of the path, 0 for a path without one.
type serveFunc func(ctx *fasthttp.RequestCtx, id int64) error

// endpoint is one method of one resource.
type endpoint struct {
	name    string // the label "handler" of the metrics and the access log
	method  string // the label "method"
	needsID bool
	serve   serveFunc
	series  series
}

// endpoints finds an endpoint by its method. A linear search beats a map: a
// resource has four at most.
type endpoints []*endpoint

func (es endpoints) find(method []byte) *endpoint {
	for _, e := range es {
		if string(method) == e.method {
			return e
		}
	}
	return nil
}

// resource is one path of the URL surface.
type resource struct {
	endpoints
	allow string // the value of Allow
	hasID bool
}

// methods says what a resource answers to, and under which name.
type methods map[string]struct {
	name  string
	serve serveFunc
}

// otherMethod is the label of a method that HTTP does not define, so that a
// client cannot make series at will.
const otherMethod = "_OTHER"

// knownMethods is the order of Allow. It ends with the catch-all label.
func knownMethods() []string {
	return []string{
		fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost, fasthttp.MethodPut, fasthttp.MethodPatch,
		fasthttp.MethodDelete, fasthttp.MethodOptions, fasthttp.MethodTrace, fasthttp.MethodConnect, otherMethod,
	}
}

// route builds the static table: every path, every method, nothing else.
func (a *API) route() {
	const get, post, patch, del = fasthttp.MethodGet, fasthttp.MethodPost, fasthttp.MethodPatch, fasthttp.MethodDelete

	a.router = router.New()
	a.router.RedirectTrailingSlash = false
	a.router.RedirectFixedPath = false
	a.router.HandleOPTIONS = false
	a.router.HandleMethodNotAllowed = false // a resource does it, and knows its methods

	a.notFound = a.outsiders("not_found", errNotFound)
	a.notAllowed = a.outsiders("method_not_allowed", errNotAllowed)
	a.badRequest = a.outsiders("bad_request", errMalformed)
	a.router.NotFound = func(ctx *fasthttp.RequestCtx) { a.run(ctx, a.notFound.pick(ctx), 0) }

	a.add("/api/ping", methods{get: {"ping", a.ping}})
	a.add("/health", methods{get: {"health", a.ping}})
	a.add("/ready", methods{get: {"ready", a.ready}})
	a.add("/api/users", methods{get: {"users", a.getUsers}, post: {"create", a.createUser}})
	a.add("/api/users/lookup", methods{post: {"lookup", a.lookupUsers}})
	a.add("/api/users/active", methods{get: {"active", a.activeUsers}})
	a.add("/api/users/{id}/address", methods{get: {"address", a.getAddress}})
	a.user = a.add("/api/users/{id}", methods{
		get: {"user", a.getUser}, patch: {"update", a.updateUser}, del: {"delete", a.deleteUser},
	})
}

// add puts one resource into the router. Whatever answers GET answers HEAD;
// the transport leaves the body out (RFC 9110, section 9.3.2).
func (a *API) add(path string, ms methods) *resource {
	r := &resource{hasID: strings.Contains(path, "{id}")}
	var names []string
	for _, m := range knownMethods() {
		served := m
		if m == fasthttp.MethodHead {
			served = fasthttp.MethodGet
		}
		def, ok := ms[served]
		if !ok {
			continue
		}
		names = append(names, m)
		r.endpoints = append(r.endpoints, &endpoint{
			name: def.name, method: m, needsID: r.hasID, serve: def.serve, series: a.observe.series(def.name, m),
		})
	}
	r.allow = strings.Join(names, ", ")
	a.router.ANY(path, func(ctx *fasthttp.RequestCtx) {
		var id int64
		if r.hasID {
			text, _ := ctx.UserValue("id").(string)
			id, _ = codec.ParseID(codec.BytesView(text)) // 0 when it is none: run answers 400
		}
		a.dispatch(ctx, r, id)
	})
	return r
}

// outsiders answer, with the same error whatever the method, the requests that
// reach no endpoint. They exist once per method for the sake of the labels.
type outsiders struct{ endpoints }

func (a *API) outsiders(name string, err error) outsiders {
	var o outsiders
	for _, m := range knownMethods() {
		o.endpoints = append(o.endpoints, &endpoint{
			name: name, method: m, series: a.observe.series(name, m),
			serve: func(*fasthttp.RequestCtx, int64) error { return err },
		})
	}
	return o
}

func (o outsiders) pick(ctx *fasthttp.RequestCtx) *endpoint {
	if e := o.find(ctx.Method()); e != nil {
		return e
	}
	return o.other()
}

// other is the endpoint of otherMethod.
func (o outsiders) other() *endpoint { return o.endpoints[len(o.endpoints)-1] }

// dispatch serves a resource by the request's method.
func (a *API) dispatch(ctx *fasthttp.RequestCtx, r *resource, id int64) {
	e := r.find(ctx.Method())
	if e == nil {
		ctx.Response.Header.Set(fasthttp.HeaderAllow, r.allow)
		e = a.notAllowed.pick(ctx)
	}
	a.run(ctx, e, id)
}

// userPath recognises /api/users/{id} without the router. What it does not
// take (an absolute URI, a longer path, an id that is none) goes the long way.
func userPath(uri []byte) (id int64, ok bool) {
	const prefix = "/api/users/"
	if len(uri) <= len(prefix) || string(uri[:len(prefix)]) != prefix {
		return 0, false
	}
	rest := uri[len(prefix):]
	if i := bytes.IndexByte(rest, '?'); i >= 0 {
		rest = rest[:i]
	}
	return codec.ParseID(rest)
}
