package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"
)

// cellParam is the query parameter that sends a request to a cell.
const cellParam = "cell"

// maxProfile bounds the time that a proxied profile is waited for.
const maxProfile = time.Hour

// toCells passes requests that name a cell to it, and all others to next.
func (f *fleet) toCells(next http.Handler) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			query := r.In.URL.Query()
			cell, err := strconv.Atoi(query.Get(cellParam))
			if err != nil {
				cell = -1 // not here: it was looked at before
			}
			query.Del(cellParam)
			r.Out.URL.RawQuery = query.Encode()
			r.SetURL(cellURL(cell, ""))
			r.Out.Host = ""
		},
		Transport: f.transport,
		ErrorHandler: func(w http.ResponseWriter, out *http.Request, err error) {
			status := http.StatusBadGateway
			if errors.Is(err, context.DeadlineExceeded) {
				status = http.StatusGatewayTimeout
			}
			http.Error(w, fmt.Sprintf("cell %s: %v", out.URL.Host, plain(err)), status)
		},
		ErrorLog: slog.NewLogLogger(f.log.Handler(), slog.LevelWarn),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if !query.Has(cellParam) {
			next.ServeHTTP(w, r)
			return
		}
		number := query.Get(cellParam)
		cell, err := strconv.Atoi(number)
		if err != nil {
			http.Error(w, fmt.Sprintf("cell: want the number of a cell, got %q; %s", number, f.numbers()), http.StatusBadRequest)
			return
		}
		c, ok := f.find(cell)
		switch {
		case !ok:
			http.Error(w, fmt.Sprintf("there is no cell %d; %s", cell, f.numbers()), http.StatusNotFound)
			return
		case !c.answers():
			http.Error(w, fmt.Sprintf("cell %d: %s", cell, c.State), http.StatusServiceUnavailable)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), f.extend(w, r))
		defer cancel()
		proxy.ServeHTTP(w, r.WithContext(ctx))
	})
}

// extend returns how long the answer of a cell may take, and lets the server write for
// so long. Package net/http/pprof does the same for the profiles of this process.
func (f *fleet) extend(w http.ResponseWriter, r *http.Request) time.Duration {
	limit := f.scrapeTimeout
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok || server.WriteTimeout <= 0 || !strings.HasPrefix(r.URL.Path, "/debug/pprof/") {
		return limit
	}
	limit = server.WriteTimeout + profileTime(r)
	// A little longer: the answer may be that there is none.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit + f.probeTimeout)) // else it ends earlier
	return limit
}

// profileTime is how long the profile that r asks for will be taken.
func profileTime(r *http.Request) time.Duration {
	seconds, err := strconv.ParseFloat(r.URL.Query().Get("seconds"), 64)
	switch {
	case seconds >= maxProfile.Seconds():
		return maxProfile
	case err == nil && seconds > 0:
		return time.Duration(seconds * float64(time.Second))
	case strings.HasSuffix(r.URL.Path, "/profile"):
		return 30 * time.Second // the default of net/http/pprof
	}
	return time.Second // that of a trace; the others take no time
}
