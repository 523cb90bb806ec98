package handlers

import (
	"context"
	"errors"

	"github.com/valyala/fasthttp"

	"pinion/codec"
	"pinion/users"
)

// createUser answers POST /api/users.
func (a *API) createUser(ctx *fasthttp.RequestCtx, _ int64) error {
	var u users.NewUser
	writer, err := a.readWrite(ctx, func(root codec.Value) (err error) {
		u, err = newUser(root)
		return err
	})
	if err != nil {
		return err
	}
	if u.Key, err = idempotencyKey(ctx, writer); err != nil {
		return err
	}
	var (
		f  *users.Fragment
		id int64
	)
	err = a.write(ctx, func(work context.Context) (err error) {
		f, id, err = a.users.Create(work, u)
		return err
	})
	if id != 0 {
		location := append([]byte(nil), "/api/users/"...)
		ctx.Response.Header.SetBytesV(fasthttp.HeaderLocation, codec.AppendInt(location, id))
	}
	if err != nil && id != 0 && !errors.Is(err, users.ErrNotFound) && !errors.Is(err, users.ErrUnknownOutcome) {
		// To call this a failure would invite a second user.
		return &problem{
			status: fasthttp.StatusServiceUnavailable, header: fasthttp.HeaderRetryAfter, value: "1",
			detail: "the user is stored, but could not be read back; Location names it",
		}
	}
	if err != nil {
		return err
	}
	a.writeUser(ctx, f)
	ctx.SetStatusCode(fasthttp.StatusCreated)
	return nil
}

// updateUser answers PATCH /api/users/{id}.
func (a *API) updateUser(ctx *fasthttp.RequestCtx, id int64) error {
	var p users.Patch
	_, err := a.readWrite(ctx, func(root codec.Value) (err error) {
		p, err = patch(root)
		return err
	})
	if err != nil {
		return err
	}
	var f *users.Fragment
	err = a.write(ctx, func(work context.Context) (err error) {
		f, err = a.users.Update(work, id, p)
		return err
	})
	if err != nil {
		return err
	}
	a.writeUser(ctx, f)
	return nil
}

// deleteUser answers DELETE /api/users/{id}.
func (a *API) deleteUser(ctx *fasthttp.RequestCtx, id int64) error {
	if _, err := a.tokens.authorize(ctx); err != nil {
		return err
	}
	err := a.write(ctx, func(work context.Context) error { return a.users.Delete(work, id) })
	if err != nil {
		return err
	}
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

// readWrite checks the token, then decodes the body and hands its root to
// read, which must copy what it keeps. It returns the name of the token.
func (a *API) readWrite(ctx *fasthttp.RequestCtx, read func(codec.Value) error) (writer string, err error) {
	if writer, err = a.tokens.authorize(ctx); err != nil {
		return "", err
	}
	hint := a.shard(ctx)
	s := a.scratch.Get(hint)
	defer a.scratch.Put(hint, s) // nothing of it is in the answer
	root, err := decodeBody(ctx, &s.decoder)
	if err != nil {
		return "", err
	}
	return writer, read(root)
}
