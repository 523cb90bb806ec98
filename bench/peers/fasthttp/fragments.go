package main

import (
	"encoding/json"
	"fmt"

	"github.com/valyala/fasthttp"

	"pinion/bench/peers/work"
)

// fragments is the JSON of users, by id.
type fragments map[int64][]byte

func newFragments(store *work.Store) (fragments, error) {
	f := make(fragments, len(store.Users()))
	for _, u := range store.Users() {
		text, err := json.Marshal(u)
		if err != nil {
			return nil, fmt.Errorf("user %d: %w", u.ID, err)
		}
		f[u.ID] = text
	}
	return f, nil
}

// find joins the users asked for in the response's own buffer.
func (f fragments) find(ctx *fasthttp.RequestCtx) {
	ids, err := work.ParseIDs(nil, string(ctx.QueryArgs().Peek("ids")))
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusBadRequest)
		return
	}
	missing := []int64{}
	r := &ctx.Response
	r.AppendBodyString(`{"users":[`)
	first := true
	for _, id := range ids {
		text := f[id]
		if text == nil {
			missing = append(missing, id)
			continue
		}
		if !first {
			r.AppendBodyString(",")
		}
		r.AppendBody(text)
		first = false
	}
	r.AppendBodyString(`],"missing":`)
	text, err := json.Marshal(missing)
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
		return
	}
	r.AppendBody(text)
	r.AppendBodyString("}")
	ctx.SetContentType("application/json")
}
