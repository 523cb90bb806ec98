package handlers

import (
	"bytes"
	"context"
	"slices"
	"strconv"

	"github.com/valyala/fasthttp"

	"pinion/codec"
	"pinion/users"
)

// getUser answers GET /api/users/{id}.
func (a *API) getUser(ctx *fasthttp.RequestCtx, id int64) error {
	l, err := a.limit(ctx)
	if err != nil {
		return err
	}
	f := a.users.CachedUser(a.shard(ctx), id)
	if f == nil {
		if f, err = a.loadUser(ctx, l, id); err != nil {
			return err
		}
	}
	if f.Missing() {
		return users.ErrNotFound
	}
	a.writeUser(ctx, f)
	return nil
}

// loadUser asks the sources for a user that is not cached.
func (a *API) loadUser(ctx *fasthttp.RequestCtx, l limit, id int64) (*users.Fragment, error) {
	s := a.lend(ctx)
	s.batch.IDs = append(s.batch.IDs, id)
	err := a.read(ctx, l, func(work context.Context) error { return a.users.Load(work, &s.batch) })
	if err != nil {
		return nil, err
	}
	return s.batch.Fragments[0], nil
}

// writeUser sends one user. A whole one goes out as the cached bytes
// themselves; one that lacks a source gets that said as its last key.
func (a *API) writeUser(ctx *fasthttp.RequestCtx, f *users.Fragment) {
	json := f.JSON()
	if f.Degraded() == 0 {
		ctx.Response.Header.SetContentType(contentJSON)
		ctx.Response.SetBodyRaw(json)
		return
	}
	s := a.lend(ctx)
	s.body = appendDegraded(append(s.body, json[:len(json)-1]...), f.Degraded())
	s.send(ctx)
}

// getUsers answers GET /api/users?ids=1,2,3.
func (a *API) getUsers(ctx *fasthttp.RequestCtx, _ int64) error {
	text, err := queryArg(ctx, "ids")
	if err != nil {
		return err
	}
	if len(text) == 0 {
		return badRequest("ids is required: ?ids=1,2,3")
	}
	s := a.lend(ctx)
	if s.batch.IDs, err = appendIDs(s.batch.IDs, text, "ids", MaxQueryIDs); err != nil {
		return err
	}
	return a.answerBatch(ctx, s)
}

// lookupUsers answers POST /api/users/lookup.
func (a *API) lookupUsers(ctx *fasthttp.RequestCtx, _ int64) error {
	s := a.lend(ctx)
	root, err := decodeBody(ctx, &s.decoder)
	if err != nil {
		return err
	}
	if s.batch.IDs, err = lookupIDs(s.batch.IDs, root); err != nil {
		return err
	}
	return a.answerBatch(ctx, s)
}

// answerBatch answers the ids in s, from L1 alone if it can.
func (a *API) answerBatch(ctx *fasthttp.RequestCtx, s *scratch) error {
	l, err := a.limit(ctx)
	if err != nil {
		return err
	}
	s.batch.IDs = s.distinct(s.batch.IDs)
	if !a.users.Cached(&s.batch) {
		err := a.read(ctx, l, func(work context.Context) error { return a.users.Load(work, &s.batch) })
		if err != nil {
			return err
		}
	}
	body, degraded, err := appendUsers(s.body, &s.batch)
	if err != nil {
		return err
	}
	body = append(body, `,"missing":[`...)
	n := 0
	for i, f := range s.batch.Fragments {
		if !f.Missing() {
			continue
		}
		if n > 0 {
			body = append(body, ',')
		}
		body = codec.AppendInt(body, s.batch.IDs[i])
		n++
	}
	s.body = appendDegraded(append(body, ']'), degraded)
	s.send(ctx)
	return nil
}

// activeUsers answers GET /api/users/active.
func (a *API) activeUsers(ctx *fasthttp.RequestCtx, _ int64) error {
	q, err := activeQuery(ctx)
	if err != nil {
		return err
	}
	s := a.lend(ctx)
	err = a.ask(ctx, func(work context.Context) error { return a.users.Active(work, q, &s.batch) })
	if err != nil {
		return err
	}
	body, degraded, err := appendUsers(s.body, &s.batch)
	if err != nil {
		return err
	}
	s.body = appendDegraded(body, degraded)
	s.send(ctx)
	return nil
}

// activeQuery reads city, since and limit.
func activeQuery(ctx *fasthttp.RequestCtx) (users.ActiveQuery, error) {
	q := users.ActiveQuery{Limit: defaultActiveLimit}
	city, err := queryArg(ctx, "city")
	if err != nil {
		return q, err
	}
	if len(city) > 0 {
		if q.Cities, err = appendIDs(nil, city, "city", MaxActiveCities); err != nil {
			return q, err
		}
	}
	since, err := queryArg(ctx, "since")
	if err != nil {
		return q, err
	}
	if len(since) > 0 {
		// The + of an offset reaches us as a space unless the caller escaped it.
		if q.Since, err = parseTime(bytes.ReplaceAll(since, []byte(" "), []byte("+"))); err != nil {
			return q, badRequest("since " + err.Error())
		}
	}
	limit, err := queryArg(ctx, "limit")
	if err != nil {
		return q, err
	}
	if len(limit) > 0 {
		n, ok := codec.ParseID(limit)
		if !ok || n > MaxActiveLimit {
			return q, badRequest("limit must be a number from 1 to " + strconv.Itoa(MaxActiveLimit))
		}
		q.Limit = int(n)
	}
	return q, nil
}

// getAddress answers GET /api/users/{id}/address.
func (a *API) getAddress(ctx *fasthttp.RequestCtx, id int64) error {
	var address string
	err := a.ask(ctx, func(work context.Context) (err error) {
		address, err = a.users.Address(work, id)
		return err
	})
	if err != nil {
		return err
	}
	s := a.lend(ctx)
	body := append(s.body, `{"id":`...)
	body = codec.AppendInt(body, id)
	body = append(body, `,"address":`...)
	body = codec.AppendString(body, address)
	s.body = append(body, '}')
	s.send(ctx)
	return nil
}

// queryArg returns the value of a query parameter, nil if it is absent. One
// that is given twice is an error: which of the two is meant is a guess.
func queryArg(ctx *fasthttp.RequestCtx, name string) ([]byte, error) {
	var value []byte
	n := 0
	for k, v := range ctx.QueryArgs().All() {
		if string(k) == name {
			value = v
			n++
		}
	}
	if n > 1 {
		return nil, badRequest(name + " is given more than once")
	}
	return value, nil
}

// appendIDs parses a list such as 1,2,3. An error names the place in it.
func appendIDs(dst []int64, text []byte, name string, most int) ([]int64, error) {
	for n := 1; ; n++ {
		if n > most {
			return dst, badRequest(name + " takes at most " + strconv.Itoa(most) + " values")
		}
		item, rest, more := bytes.Cut(text, []byte{','})
		id, ok := codec.ParseID(item)
		if !ok {
			return dst, badRequest(name + ": value " + strconv.Itoa(n) + " is not a positive 64-bit integer in plain digits")
		}
		dst = append(dst, id)
		if !more {
			return dst, nil
		}
		text = rest
	}
}

// appendUsers appends `{"users":[…]` and leaves the object open. It grows dst
// once, and refuses an answer that would be larger than MaxAnswerBytes.
func appendUsers(dst []byte, b *users.Batch) ([]byte, users.Degraded, error) {
	const perID = 21 // a comma, and an id among the missing
	size := 0
	for _, f := range b.Fragments {
		size += len(f.JSON()) + perID
	}
	if size > MaxAnswerBytes {
		return dst, 0, badRequest("these users have more than " + strconv.Itoa(MaxAnswerBytes) + " bytes; ask for fewer at once")
	}
	var degraded users.Degraded
	dst = append(slices.Grow(dst, size), `{"users":[`...)
	first := true
	for _, f := range b.Fragments {
		if f.Missing() {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, f.JSON()...)
		degraded |= f.Degraded()
	}
	return append(dst, ']'), degraded, nil
}

// appendDegraded names the sources that failed and closes the object.
func appendDegraded(dst []byte, d users.Degraded) []byte {
	if d != 0 {
		dst = append(dst, `,"degraded":`...)
		dst = d.AppendJSON(dst)
	}
	return append(dst, '}')
}
