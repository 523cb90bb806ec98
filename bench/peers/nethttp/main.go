// Command nethttp is the peer "net/http": the standard library and nothing else. Timeouts
// are set, as the documentation of http.Server has it; the rest is the default.
package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"pinion/bench/peers/standard"
	"pinion/bench/peers/work"
)

func main() { os.Exit(work.Run(serve)) }

func serve(ctx context.Context, c work.Config) error {
	a := api{users: c.Users}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/ping", a.ping)
	mux.HandleFunc("GET /sleep", a.sleep)
	mux.HandleFunc("GET /json", a.order)
	mux.HandleFunc("POST /json", a.purchase)
	mux.HandleFunc("GET /api/users", a.find)
	return standard.Serve(ctx, c.Addr, mux)
}

type api struct{ users *work.Store }

func (api) ping(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, work.OK) // the client left
}

func (a api) sleep(w http.ResponseWriter, r *http.Request) {
	time.Sleep(work.Nap)
	a.ping(w, r)
}

func (api) order(w http.ResponseWriter, r *http.Request) {
	id, err := work.ParseID(r.URL.Query().Get("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer(w, work.NewOrder(id))
}

func (api) purchase(w http.ResponseWriter, r *http.Request) {
	var p work.Purchase
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	receipt, err := p.Receipt()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer(w, receipt)
}

func (a api) find(w http.ResponseWriter, r *http.Request) {
	ids, err := work.ParseIDs(nil, r.URL.Query().Get("ids"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer(w, a.users.Find(ids))
}

// answer says how long the body is, or net/http would send one over 2 KiB in chunks.
func answer(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client left
}
