package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"pinion/bench/peers/work"
)

var errRequest = errors.New("not an HTTP/1.1 request")

// request is a request. Its parts lie in the buffer it was read from.
type request struct {
	method, path, query, body []byte
	close                     bool // is asked for
}

// parse reads the request at the start of in, and says how long it is: 0 if not all of it
// is there yet.
func parse(in []byte) (req request, n int, err error) {
	end := bytes.Index(in, []byte("\r\n\r\n"))
	if end < 0 {
		return req, 0, nil
	}
	head, n := in[:end], end+4
	line, fields, _ := bytes.Cut(head, []byte("\r\n"))
	method, rest, _ := bytes.Cut(line, []byte{' '})
	target, version, ok := bytes.Cut(rest, []byte{' '})
	if !ok || string(version) != "HTTP/1.1" {
		return req, 0, errRequest
	}
	req.method = method
	req.path, req.query, _ = bytes.Cut(target, []byte{'?'})
	length := 0
	for len(fields) > 0 {
		line, fields, _ = bytes.Cut(fields, []byte("\r\n"))
		name, value, ok := bytes.Cut(line, []byte{':'})
		if !ok {
			return req, 0, errRequest
		}
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 {
				return req, 0, errRequest
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			return req, 0, errRequest
		case bytes.EqualFold(name, []byte("Connection")):
			req.close = bytes.EqualFold(value, []byte("close"))
		}
	}
	if len(in)-n < length {
		return req, 0, nil
	}
	req.body = in[n : n+length]
	return req, n + length, nil
}

// answer is an answer of which only status and body differ.
type answer struct {
	status int
	body   []byte
}

// appendAnswer appends an answer. last says that the connection ends with it.
func appendAnswer(b []byte, date string, a answer, last bool) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(a.status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(a.status)...)
	b = append(b, "\r\nServer: gnet\r\nDate: "...)
	b = append(b, date...)
	b = append(b, "\r\nContent-Type: application/json\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(a.body)), 10)
	if last {
		b = append(b, "\r\nConnection: close"...) // RFC 9112, 9.6
	}
	b = append(b, "\r\n\r\n"...)
	return append(b, a.body...)
}

type api struct {
	users *work.Store
	ok    []byte // the body of /api/ping and /sleep
}

func (a *api) answer(req request) answer {
	get, post := string(req.method) == "GET", string(req.method) == "POST"
	switch path := string(req.path); {
	case path == "/api/ping" && get:
		return answer{http.StatusOK, a.ok}
	case path == "/json" && get:
		return a.order(req)
	case path == "/json" && post:
		return a.purchase(req)
	case path == "/api/users" && get:
		return a.find(req)
	}
	return answer{status: http.StatusNotFound}
}

func (*api) order(req request) answer {
	id, err := work.ParseID(parameter(req.query, "id"))
	if err != nil {
		return answer{status: http.StatusBadRequest}
	}
	return encode(work.NewOrder(id))
}

func (*api) purchase(req request) answer {
	var p work.Purchase
	if err := json.Unmarshal(req.body, &p); err != nil {
		return answer{status: http.StatusBadRequest}
	}
	receipt, err := p.Receipt()
	if err != nil {
		return answer{status: http.StatusBadRequest}
	}
	return encode(receipt)
}

func (a *api) find(req request) answer {
	ids, err := work.ParseIDs(nil, parameter(req.query, "ids"))
	if err != nil {
		return answer{status: http.StatusBadRequest}
	}
	return encode(a.users.Find(ids))
}

func encode(v any) answer {
	body, err := json.Marshal(v)
	if err != nil {
		return answer{status: http.StatusInternalServerError}
	}
	return answer{http.StatusOK, body}
}

// parameter returns a parameter of a query. Those of these routes need no escapes.
func parameter(query []byte, name string) string {
	for pair := range bytes.SplitSeq(query, []byte{'&'}) {
		if key, value, _ := bytes.Cut(pair, []byte{'='}); string(key) == name {
			return string(value)
		}
	}
	return ""
}
