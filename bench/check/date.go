package check

import (
	"context"
	"net/http"
	"time"

	"pinion/bench/peers/work"
)

// exact is what a Date may be off by, in whole seconds. Servers renew it about once a second.
const exact = 2 * time.Second

// date checks a Date, which an origin server with a clock must send (RFC 9110, 6.6.1), in
// the form that is left to senders (5.6.7). It is from between a request and its answer, so
// that it is no matter how long they were on their way.
func date(route, value string, sent, received time.Time) error {
	t, err := time.Parse(http.TimeFormat, value)
	if err != nil || t.Format(http.TimeFormat) != value {
		return &Error{route, "Date", "a date as in " + received.UTC().Format(http.TimeFormat), value}
	}
	if sent.Truncate(time.Second).Sub(t) > exact || t.Sub(received) > exact {
		return &Error{route, "Date", received.UTC().Format(http.TimeFormat), value}
	}
	return nil
}

// renewed asks on a connection until the Date is another. One that is never renewed gets
// wrong meanwhile.
func renewed(ctx context.Context, c *conn, e *work.Exchange, before string) error {
	for {
		a, err := c.ask(e)
		if err != nil || a.date() != before {
			return again(e, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
