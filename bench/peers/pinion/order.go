package main

import (
	"errors"
	"fmt"

	"github.com/valyala/fasthttp"

	"pinion/bench/peers/work"
	"pinion/codec"
	"pinion/engine"
)

var (
	errKey = errors.New("unknown key")
	errID  = errors.New("want a positive number")
)

func (*api) order(ctx *fasthttp.RequestCtx) {
	id, ok := codec.ParseID(ctx.QueryArgs().Peek("id"))
	if !ok {
		ctx.Error(errID.Error(), fasthttp.StatusBadRequest)
		return
	}
	o := work.NewOrder(id)
	ctx.SetContentType("application/json")
	// The response has a buffer from the request before; it comes back longer.
	ctx.Response.SwapBody(appendOrder(ctx.Response.SwapBody(nil)[:0], &o))
}

func appendOrder(b []byte, o *work.Order) []byte {
	b = append(b, `{"id":`...)
	b = codec.AppendInt(b, o.ID)
	b = append(b, `,"state":`...)
	b = codec.AppendString(b, o.State)
	b = append(b, `,"created_at":`...)
	b = codec.AppendTime(b, o.CreatedAt)
	b = append(b, `,"customer":{"id":`...)
	b = codec.AppendInt(b, o.Customer.ID)
	b = append(b, `,"name":`...)
	b = codec.AppendString(b, o.Customer.Name)
	b = append(b, `,"city":`...)
	b = codec.AppendString(b, o.Customer.City)
	b = append(b, `},"items":[`...)
	for i := range o.Items {
		item := &o.Items[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"product":`...)
		b = codec.AppendInt(b, item.Product)
		b = append(b, `,"name":`...)
		b = codec.AppendString(b, item.Name)
		b = append(b, `,"color":`...)
		b = codec.AppendString(b, item.Color)
		b = append(b, `,"quantity":`...)
		b = codec.AppendInt(b, item.Quantity)
		b = append(b, `,"price_cents":`...)
		b = codec.AppendInt(b, item.Cents)
		b = append(b, `,"tax_cents":`...)
		b = codec.AppendInt(b, item.Tax)
		b = append(b, `,"gift":`...)
		b = codec.AppendBool(b, item.Gift)
		b = append(b, '}')
	}
	b = append(b, `],"total_cents":`...)
	b = codec.AppendInt(b, o.Total)
	b = append(b, `,"paid":`...)
	b = codec.AppendBool(b, o.Paid)
	return append(b, '}')
}

func (a *api) purchase(ctx *fasthttp.RequestCtx) {
	hint := shard(ctx)
	s := a.scratch.Get(hint)
	defer a.scratch.Put(hint, s)
	p, err := s.purchase(ctx.Request.Body())
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusBadRequest)
		return
	}
	receipt, err := p.Receipt()
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusBadRequest)
		return
	}
	ctx.SetContentType("application/json")
	ctx.Response.SwapBody(appendReceipt(ctx.Response.SwapBody(nil)[:0], &receipt))
}

// purchase reads a body. What it returns is valid until the next call.
func (s *scratch) purchase(body []byte) (p work.Purchase, err error) {
	p.Lines = s.lines[:0]
	defer func() { s.lines = p.Lines }()
	doc, err := s.json.Decode(body)
	if err != nil {
		return p, err
	}
	if err := doc.Expect(codec.Object); err != nil {
		return p, err
	}
	for key, v := range doc.Members() {
		switch codec.StringView(key) {
		case "order":
			p.Order, err = v.Int64()
		case "customer":
			p.Customer, err = text(v)
		case "note":
			p.Note, err = text(v)
		case "lines":
			p.Lines, err = appendLines(p.Lines, v)
		default:
			err = errKey
		}
		if err != nil {
			return p, fmt.Errorf("%q: %w", key, err)
		}
	}
	return p, nil
}

func appendLines(lines []work.Line, v codec.Value) ([]work.Line, error) {
	if err := v.Expect(codec.Array); err != nil {
		return lines, err
	}
	for element := range v.Elements() {
		if err := element.Expect(codec.Object); err != nil {
			return lines, err
		}
		var line work.Line
		for key, v := range element.Members() {
			var err error
			switch codec.StringView(key) {
			case "product":
				line.Product, err = v.Int64()
			case "quantity":
				line.Quantity, err = v.Int64()
			case "cents":
				line.Cents, err = v.Int64()
			default:
				err = errKey
			}
			if err != nil {
				return lines, fmt.Errorf("%q: %w", key, err)
			}
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// text returns a string that is valid as long as v is.
func text(v codec.Value) (string, error) {
	b, err := v.Bytes()
	return codec.StringView(b), err
}

func appendReceipt(b []byte, r *work.Receipt) []byte {
	b = append(b, `{"order":`...)
	b = codec.AppendInt(b, r.Order)
	b = append(b, `,"customer":`...)
	b = codec.AppendString(b, r.Customer)
	b = append(b, `,"products":`...)
	b = codec.AppendInt(b, r.Products)
	b = append(b, `,"pieces":`...)
	b = codec.AppendInt(b, r.Pieces)
	b = append(b, `,"cents":`...)
	b = codec.AppendInt(b, r.Cents)
	b = append(b, `,"note_bytes":`...)
	b = codec.AppendInt(b, int64(r.Note))
	return append(b, '}')
}

// shard is the number of the loop, for what is kept by loop.
func shard(ctx *fasthttp.RequestCtx) uint64 {
	loop, _ := engine.Loop(ctx)
	return uint64(loop)
}
