// Package engine serves fasthttp handlers on event loops.
//
// A Server runs one loop per CPU. Each loop has its own listener, epoll
// instance, read buffer and timers, and shares nothing with the others while it
// serves requests. A handler that does not block runs on the loop itself: no
// goroutine is switched and nothing is allocated. An idle connection is one
// small struct.
//
// # Blocking
//
// A handler that may block says so with MayBlock, at the latest moment: the
// loop gets a new goroutine and goes on with other connections, and the handler
// continues where it is. A Server whose Handler is not declared NonBlocking
// calls MayBlock before every request, so that foreign code never stalls a loop.
// Work that blocks should run under Context, which ends when the client leaves.
//
// # Promotion
//
// What the loops do not do themselves goes to a fasthttp.Server: requests without
// a body that ask for an upgrade (but h2c), CONNECT, and, with Server.StreamRequestBody,
// bodies that are streamed. It serves one request on the connection, or a
// hijack as long as that takes. Answers with a body stream are sent by the
// goroutine of their request, which gives the connection back afterwards.
//
// # Strictness
//
// The engine refuses requests that RFC 9110 and RFC 9112 forbid, also where
// fasthttp lets them through, before any handler runs: bare LF, white space in
// or after field names, folded fields, repeated or missing Host, Content-Length
// with Transfer-Encoding, transfer codings other than chunked (501), versions
// other than 1.0 and 1.1 (505), expectations other than 100-continue (417).
// After a refusal the connection closes, so a request smuggled behind a bad one
// is never served.
//
// # Life of a Server
//
// Set Handler and options, call Serve or ListenAndServe once, and Shutdown. A
// Server does not start again.
//
// # What differs from fasthttp.Server
//
// fasthttp has no public way for another transport to set these:
//
//   - ctx.ConnID() and ctx.ID() are new for each request, ctx.ConnRequestNum()
//     is 0, ctx.ConnTime() is ctx.Time().
//   - ctx.Done() never ends; Context does, except for promoted requests.
//   - ctx.Hijack works only in requests that ask for an upgrade, and CONNECT;
//     elsewhere the answer is 500.
//   - ctx.Conn() is not the socket: type assertions fail, deadlines set through
//     it do nothing, and SetReadDeadline and SetWriteDeadline of ctx neither.
//   - multipart bodies are parsed when the handler asks, from memory.
//   - an HTTP/1.0 request gets a streamed answer of unknown length without the
//     chunked coding, ended by the connection.
//   - there are no options to leave the Date header away, to see headers before
//     the body, or to decide about 100-continue, which is always sent.
//
// And on purpose: a panic in a handler is a 500, and the connection closes; a
// new connection that sends nothing is closed without an answer; the limit of a
// head does not depend on a buffer; memory for a body is taken as it arrives.
package engine
