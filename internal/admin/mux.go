package admin

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/pprof"
)

const index = `pinion, private port

/health         200 while the process lives
/ready          200 while requests should come here, else 503 and the reason
/metrics        Prometheus text format
/debug/pprof/   profiles, e.g. go tool pprof http://HOST/debug/pprof/profile?seconds=10
`

func newMux(cfg Config) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, index) // the client left: nobody to tell
	})
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, state{Status: "ok"})
	})
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, r *http.Request) {
		if cfg.Ready != nil {
			if err := cfg.Ready(r.Context()); err != nil {
				answer(w, http.StatusServiceUnavailable, state{Status: "unavailable", Reason: err.Error()})
				return
			}
		}
		answer(w, http.StatusOK, state{Status: "ok"})
	})
	mux.Handle("GET /metrics", metricsHandler(cfg))

	mux.HandleFunc("GET /debug/pprof/", pprof.Index) // and every profile that has a name
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	return mux
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
