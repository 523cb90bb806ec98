package work

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// The routes, by the names that samples and sizes of answers go by.
const (
	RoutePing  = "ping"
	RouteJSON  = "json"
	RouteUsers = "users"
	RoutePost  = "post"
	RouteSleep = "sleep"
)

// Exchange is a request and what must come back.
type Exchange struct {
	Route  string
	Method string
	Target string
	Body   []byte // nil: none
	Want   []byte // the body of the answer
}

// NewPing returns the exchange of /api/ping.
func NewPing() Exchange {
	return Exchange{Route: RoutePing, Method: "GET", Target: "/api/ping", Want: []byte(OK)}
}

// NewSleep returns the exchange of /sleep.
func NewSleep() Exchange {
	return Exchange{Route: RouteSleep, Method: "GET", Target: "/sleep", Want: []byte(OK)}
}

// NewJSON returns the exchange for an order.
func NewJSON(id int64) (Exchange, error) {
	e := Exchange{Route: RouteJSON, Method: "GET", Target: "/json?id=" + strconv.FormatInt(id, 10)}
	var err error
	if e.Want, err = json.Marshal(NewOrder(id)); err != nil {
		err = fmt.Errorf("order %d: %w", id, err)
	}
	return e, err
}

// NewPost returns the exchange for a purchase, whose number has at most 15 digits.
func NewPost(order int64) (Exchange, error) {
	e := Exchange{Route: RoutePost, Method: "POST", Target: "/json"}
	p, body, err := newPurchase(order)
	if err != nil {
		return e, err
	}
	e.Body = body
	receipt, err := p.Receipt()
	if err != nil {
		return e, err
	}
	e.Want, err = json.Marshal(receipt)
	return e, err
}

// NewUsers returns the exchange for some users of a store, which must be different ones.
func NewUsers(s *Store, ids []int64) (Exchange, error) {
	target := []byte("/api/users?ids=")
	for i, id := range ids {
		if i > 0 {
			target = append(target, ',')
		}
		target = strconv.AppendInt(target, id, 10)
	}
	e := Exchange{Route: RouteUsers, Method: "GET", Target: string(target)}
	var err error
	if e.Want, err = json.Marshal(s.Find(ids)); err != nil {
		err = fmt.Errorf("users %v: %w", ids, err)
	}
	return e, err
}

// Append appends the request as HTTP/1.1 has it, with more lines of its head if there are.
func (e *Exchange) Append(dst []byte, host string, fields ...string) []byte {
	dst = append(dst, e.Method+" "+e.Target+" HTTP/1.1\r\nHost: "+host+"\r\n"...)
	for _, f := range fields {
		dst = append(dst, f+"\r\n"...)
	}
	if e.Body != nil {
		dst = append(dst, "Content-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(e.Body))+"\r\n"...)
	}
	dst = append(dst, "\r\n"...)
	return append(dst, e.Body...)
}
