// Package members asks the member service who is a member: a Client is the
// MemberSource of package users.
//
// # The service's side of the bargain
//
// The request is GET {base}/members?ids=1,2,3 with at most 256 ids, ascending and
// distinct. The answer has status 200, is of type application/json, and accounts for
// every id, once: a member stands in "members", an id that is no member in "none".
//
//	{"members":[{"id":1,"level":"gold","points":1200}],"none":[2,3]}
//
// "none" may be left out when it would be empty. An id in neither list is not taken for
// "no member": a service that lost half of its data would look just like that. The
// order does not matter, and keys that are not named here are passed over, so that the
// service may grow. Points may be negative.
//
// Everything else is an [AnswerError], and nothing of that answer is used: another
// status, a redirect, another content type, a compressed body, one of more than
// [MaxAnswer] bytes, one that is cut short or is no strict JSON (repeated keys and
// invalid UTF-8 included), an id that was not asked for or that comes twice, a field
// that is missing or of another type, a level that is empty or longer than [MaxLevel].
//
// # Connections
//
// The client keeps connections open between requests, never more than MaxConns, and
// starts no goroutine. It has its own small pool rather than fasthttp's HostClient:
// that one takes no context, so a caller who leaves would go on holding a connection
// until the deadline. Here the end of a context ends the dial or the request at once,
// and that connection is closed.
//
// The next request would take whatever else comes on a connection for its own answer. So
// a connection is kept only after an answer that was accepted, and looked at before it is
// used again: if anything followed the answer, or the service closed it, it is closed.
// What has rested for longer than IdleTimeout is closed by the next request.
//
// A kept connection may still be closed by the service while a request is on its way. A request that
// finds out before the first byte of an answer is sent once more, on a new one.
package members
