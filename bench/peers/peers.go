package peers

import (
	"slices"

	"pinion/bench/peers/work"
)

// Peer is one server.
type Peer struct {
	Name     string // as in the record
	Language string
	Setup    string // how it is set up, in a sentence
	// Canned is true of a server that does not look at what it is asked.
	Canned bool

	folder string   // of its main package, below this one; empty: no program of ours
	args   []string // of that program, after those of all
	module string   // whose version it has
	routes []string // nil: all
}

// Routes returns the names of all routes, as peers/work has them.
func Routes() []string {
	return []string{work.RoutePing, work.RouteJSON, work.RouteUsers, work.RoutePost, work.RouteSleep}
}

// Has reports whether the peer answers a route.
func (p *Peer) Has(route string) bool {
	return p.routes == nil || slices.Contains(p.routes, route)
}

// Can reports whether the peer can be measured under a scenario of the record. Those with
// a route of their own have its name.
func (p *Peer) Can(scenario string) bool {
	switch scenario {
	case work.RouteJSON, work.RouteUsers, work.RoutePost, work.RouteSleep:
		return p.Has(scenario)
	case "mix":
		return p.Has(work.RoutePing) && p.Has(work.RouteSleep)
	default: // all others send pings
		return p.Has(work.RoutePing)
	}
}

// All returns the peers, always in the same order.
func All() []Peer {
	only := []string{work.RoutePing}
	return []Peer{
		{Name: "pinion", Language: "Go", module: "pinion", routes: []string{work.RoutePing, work.RouteUsers}, Setup: "the product as it is started, with users in SQLite, answered from JSON that was made when they were read; metrics, request ids and the access log's default (errors) included"},
		{Name: "engine", Language: "Go", folder: "pinion", module: "pinion", Setup: "pinion's event loops with fasthttp/router and codec, without the product's middleware; users are structs that are encoded for each request, their attributes sorted beforehand"},
		{Name: "fasthttp", Language: "Go", folder: "fasthttp", module: "github.com/valyala/fasthttp", Setup: "fasthttp.Server with fasthttp/router and encoding/json"},
		{Name: "fasthttp+fragments", Language: "Go", folder: "fasthttp", args: []string{"-fragments"}, module: "github.com/valyala/fasthttp", routes: []string{work.RouteUsers}, Setup: "the same with the JSON of each user made beforehand, once, by encoding/json; a request joins it"},
		{Name: "gnet", Language: "Go", folder: "gnet", module: "github.com/panjf2000/gnet/v2", Setup: "a minimal HTTP/1.1 of our own on its event loops; what blocks goes to its worker pool"},
		{Name: "fiber", Language: "Go", folder: "fiber", module: "github.com/gofiber/fiber/v3", Setup: "recover middleware, goccy/go-json"},
		{Name: "hertz", Language: "Go", folder: "hertz", module: "github.com/cloudwego/hertz", Setup: "netpoll and sonic, its defaults; recovery middleware"},
		{Name: "net/http", Language: "Go", folder: "nethttp", Setup: "http.Server with http.ServeMux and encoding/json"},
		{Name: "chi", Language: "Go", folder: "chi", module: "github.com/go-chi/chi/v5", Setup: "on http.Server, Recoverer middleware"},
		{Name: "gin", Language: "Go", folder: "gin", module: "github.com/gin-gonic/gin", Setup: "release mode, Recovery middleware, on http.Server"},
		{Name: "echo", Language: "Go", folder: "echo", module: "github.com/labstack/echo/v5", Setup: "Recover middleware, on http.Server"},
		{Name: "nginx", Language: "C", routes: only, Setup: "return 200, one worker for each CPU, no access log; one worker does without a master"},
		{Name: "HAProxy", Language: "C", routes: only, Setup: "http-request return, one thread for each CPU; a rule adds the Date it does not send itself"},
		{Name: "floor", Language: "C", routes: only, Canned: true, Setup: "the least that epoll allows: one thread, no parsing, a canned answer"},
	}
}
