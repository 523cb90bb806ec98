package admin

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/pprof"
)

// index is the first page; that of a supervisor goes on with fleet.index.
const index = `pinion, private port

/health         200 while the process lives
/ready          200 while requests should come here, else 503 and the reason
/metrics        Prometheus text format
/debug/pprof/   profiles, e.g. go tool pprof http://HOST/debug/pprof/profile?seconds=10
`

// newHandler serves every page; fleet is nil for a process without cells.
func newHandler(cfg Config, fleet *fleet) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, index) // the client left: nobody to tell
		if fleet != nil {
			_, _ = io.WriteString(w, fleet.index())
		}
	})
	health, ready := always, always
	if cfg.Ready != nil {
		ready = cfg.Ready
	}
	if fleet != nil {
		own := ready
		health = fleet.alive
		ready = func(ctx context.Context) error {
			if err := own(ctx); err != nil {
				return err
			}
			return fleet.ready(ctx)
		}
	}
	mux.HandleFunc("GET /health", probe(health))
	mux.HandleFunc("GET /ready", probe(ready))
	mux.Handle("GET /metrics", metricsHandler(cfg, fleet))

	mux.HandleFunc("GET /debug/pprof/", pprof.Index) // and every profile that has a name
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	if fleet != nil {
		return fleet.toCells(mux)
	}
	return mux
}

// always is the check of a process that is as it should be while it can say so.
func always(context.Context) error { return nil }

// probe answers what check says.
func probe(check func(context.Context) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := check(r.Context()); err != nil {
			answer(w, http.StatusServiceUnavailable, state{Status: "unavailable", Reason: err.Error()})
			return
		}
		answer(w, http.StatusOK, state{Status: "ok"})
	}
}

// state is the answer of /health and /ready.
type state struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

func answer(w http.ResponseWriter, status int, s state) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(s) // the client left: nobody to tell
}
