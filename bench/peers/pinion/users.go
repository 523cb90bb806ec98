package main

import (
	"maps"
	"slices"

	"github.com/valyala/fasthttp"

	"pinion/bench/peers/work"
	"pinion/codec"
)

// user is a user with attributes in the order they are written.
type user struct {
	*work.User
	attributes []attribute
}

type attribute struct{ key, value string }

func newUser(u *work.User) *user {
	attributes := make([]attribute, 0, len(u.Attributes))
	for _, key := range slices.Sorted(maps.Keys(u.Attributes)) {
		attributes = append(attributes, attribute{key, u.Attributes[key]})
	}
	return &user{u, attributes}
}

func (a *api) find(ctx *fasthttp.RequestCtx) {
	hint := shard(ctx)
	s := a.scratch.Get(hint)
	defer a.scratch.Put(hint, s)
	ids, err := work.ParseIDs(s.ids[:0], codec.StringView(ctx.QueryArgs().Peek("ids")))
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusBadRequest)
		return
	}
	s.ids = ids
	ctx.SetContentType("application/json")
	ctx.Response.SwapBody(a.appendFound(ctx.Response.SwapBody(nil)[:0], ids))
}

func (a *api) appendFound(b []byte, ids []int64) []byte {
	b = append(b, `{"users":[`...)
	found := 0
	for _, id := range ids {
		u := a.users[id]
		if u == nil {
			continue
		}
		if found > 0 {
			b = append(b, ',')
		}
		b = appendUser(b, u)
		found++
	}
	b = append(b, `],"missing":[`...)
	if found < len(ids) {
		b = a.appendMissing(b, ids)
	}
	return append(b, "]}"...)
}

func (a *api) appendMissing(b []byte, ids []int64) []byte {
	first := true
	for _, id := range ids {
		if a.users[id] != nil {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		b = codec.AppendInt(b, id)
		first = false
	}
	return b
}

func appendUser(b []byte, u *user) []byte {
	b = append(b, `{"id":`...)
	b = codec.AppendInt(b, u.ID)
	b = append(b, `,"name":`...)
	b = codec.AppendString(b, u.Name)
	b = append(b, `,"email":`...)
	b = codec.AppendString(b, u.Email)
	b = append(b, `,"phone":`...)
	b = codec.AppendString(b, u.Phone)
	b = append(b, `,"avatar":`...)
	b = codec.AppendString(b, u.Avatar)
	b = append(b, `,"status":`...)
	b = codec.AppendInt(b, int64(u.Status))
	b = append(b, `,"city_id":`...)
	b = codec.AppendInt(b, u.CityID)
	b = append(b, `,"last_login_at":`...)
	if u.LastLoginAt == nil {
		b = append(b, "null"...)
	} else {
		b = codec.AppendTime(b, *u.LastLoginAt)
	}
	b = append(b, `,"created_at":`...)
	b = codec.AppendTime(b, u.CreatedAt)
	b = append(b, `,"updated_at":`...)
	b = codec.AppendTime(b, u.UpdatedAt)
	b = append(b, `,"attributes":{`...)
	for i, a := range u.attributes {
		if i > 0 {
			b = append(b, ',')
		}
		b = codec.AppendString(b, a.key)
		b = append(b, ':')
		b = codec.AppendString(b, a.value)
	}
	b = append(b, `},"member":`...)
	if u.Member == nil {
		return append(b, "null}"...)
	}
	b = append(b, `{"level":`...)
	b = codec.AppendString(b, u.Member.Level)
	b = append(b, `,"points":`...)
	b = codec.AppendInt(b, u.Member.Points)
	return append(b, "}}"...)
}
