package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"pinion/bench/peers/work"
)

// alone sends each request on a connection of its own, and returns the size of the answer
// to the first of each route.
func (s *server) alone(ctx context.Context, all []work.Exchange) (map[string]int, error) {
	sizes := map[string]int{}
	for i := range all {
		e := &all[i]
		err := s.on(ctx, func(c *conn) error {
			a, err := c.ask(e)
			if sizes[e.Route] == 0 {
				sizes[e.Route] = a.size
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return sizes, nil
}

// keptAlive sends all requests on one connection, and one more, since there may have been
// just one.
func (s *server) keptAlive(ctx context.Context, all []work.Exchange) error {
	return s.on(ctx, func(c *conn) error {
		for i := range len(all) + 1 {
			e := &all[i%len(all)]
			if _, err := c.ask(e); err != nil {
				return again(e, err)
			}
		}
		return nil
	})
}

// again says what an error of a connection means that had been answered on before.
func again(e *work.Exchange, err error) error {
	var wrong *Error
	if err == nil || errors.As(err, &wrong) && wrong.What != "answer" {
		return err
	}
	return &Error{e.Route, "a further request on a connection", "an answer", err.Error()}
}

// depth is how many requests are pipelined.
const depth = 16

// pipelined sends requests in one write. Their answers must come in the same order.
func (s *server) pipelined(ctx context.Context, all []work.Exchange) error {
	order := s.random("pipelined").Perm(len(all))
	var requests []byte
	for i := range depth {
		requests = all[order[i%len(order)]].Append(requests, s.Addr)
	}
	return s.on(ctx, func(c *conn) error {
		if err := c.send(requests); err != nil {
			return err
		}
		for i := range depth {
			if _, err := c.expect(&all[order[i%len(order)]], false); err != nil {
				return among(fmt.Sprintf("answer %d of %d to pipelined requests", i+1, depth), err)
			}
		}
		return nil
	})
}

// closed asks for the end of a connection: with its first request, and with the last of ten.
func (s *server) closed(ctx context.Context, all []work.Exchange) error {
	for _, before := range []int{0, 9} {
		err := s.on(ctx, func(c *conn) error {
			for i := range before {
				e := &all[i%len(all)]
				if _, err := c.ask(e); err != nil {
					return again(e, err)
				}
			}
			e := &all[before%len(all)]
			if err := c.send(e.Append(nil, s.Addr, "Connection: close")); err != nil {
				return err
			}
			if _, err := c.expect(e, true); err != nil {
				return among("the answer to a request with Connection: close", err)
			}
			if b, err := c.in.ReadByte(); !errors.Is(err, io.EOF) {
				return &Error{"close", "what follows the answer to a request with Connection: close", "the end of the connection", fmt.Sprintf("%q, %v", b, err)}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unknown asks for a path that is not there.
func (s *server) unknown(ctx context.Context) error {
	return s.on(ctx, func(c *conn) error {
		e := work.Exchange{Route: "unknown", Method: "GET", Target: fmt.Sprintf("/no/%d", s.random("unknown").Int64N(1e6))}
		if err := c.send(e.Append(nil, s.Addr)); err != nil {
			return err
		}
		a, err := c.read()
		if err != nil {
			return &Error{e.Route, "answer", "one that can be read", err.Error()}
		}
		if a.status != 404 {
			return &Error{e.Route, "status", "404", fmt.Sprint(a.status)}
		}
		return nil
	})
}

// split sends requests in two pieces each, cut where it is awkward, all at the same time.
func (s *server) split(ctx context.Context, some []work.Exchange) error {
	var pieces [][2][]byte
	var exchanges []*work.Exchange
	for i := range some {
		e := &some[i]
		request := e.Append(nil, s.Addr)
		for _, cut := range cuts(request) {
			pieces = append(pieces, [2][]byte{request[:cut], request[cut:]})
			exchanges = append(exchanges, e)
		}
	}
	return s.several(ctx, len(pieces), func(conns []*conn) error {
		for half := range 2 {
			for i, c := range conns {
				if err := c.send(pieces[i][half]); err != nil {
					return among(inPieces, &Error{exchanges[i].Route, "answer", "one that can be read", err.Error()})
				}
			}
			if half == 0 {
				time.Sleep(20 * time.Millisecond) // so that the pieces are read apart
			}
		}
		for i, c := range conns {
			if _, err := c.expect(exchanges[i], false); err != nil {
				return fmt.Errorf("cut after %q: %w", pieces[i][0], among(inPieces, err))
			}
		}
		return nil
	})
}

// inPieces is where errors of split are.
const inPieces = "a request in two pieces"

// cuts returns where a request is cut: in the method, in the target, before the last byte of
// its line, in the name and in the value of a field, in the empty line, and in the body.
func cuts(request []byte) []int {
	line := bytes.Index(request, []byte("\r\n"))
	head := bytes.Index(request, []byte("\r\n\r\n"))
	all := []int{1, line / 2, line + 1, line + 4, line + 10, head + 1, head + 2, head + 3, (head + 4 + len(request)) / 2}
	return slices.DeleteFunc(all, func(cut int) bool { return cut >= len(request) })
}
