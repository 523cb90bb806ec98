// Package handlers is the whole URL surface of pinion: it turns HTTP requests
// into questions to a [users.Service] and its answers into JSON.
//
// # Lifecycle
//
// [New] builds an [API] once, from an [Options] value; nothing in it changes
// afterwards. [API.Serve] is an ordinary [fasthttp.RequestHandler] and may run
// on any transport, on any number of goroutines. [API.ServeError] belongs in
// fasthttp.Server.ErrorHandler: it gives the requests that never reach a
// handler (a head too large, a body too large, a broken request line) the same
// error shape as all others.
//
// # The way of a request
//
//  1. A path made of fixed parts is found in a [router.Router]; the one hot path
//     with a parameter, /api/users/{id}, is matched before it, because the router
//     copies parameters into user values (two allocations, see
//     docs/rationale.md).
//  2. The path names a resource, the method picks one of its endpoints; a
//     missing one is a 405 whose Allow lists the others.
//  3. The endpoint writes an answer or returns an error. Errors become
//     application/problem+json (RFC 9457) in one place, problem.go.
//  4. The request is measured and, when the access log wants it, logged.
//
// A user found in the L1 cache is answered without an allocation. One is sent
// from the cached bytes themselves; several are appended into a pooled
// buffer that returns when the answer is written.
//
// # Caveats
//
//   - Paths are matched as sent. /api/users/%31 is not /api/users/1, and // is
//     not cleaned: one resource has one spelling, for caches and access rules in
//     front of pinion.
//   - The buffer of an answer is held as a user value, which gives it back when
//     the request is reset. Do not call ctx.ResetUserValues between Serve and
//     the write of the answer.
//   - Bytes returned by a users.Fragment are shared by all readers. A
//     middleware around Serve must not change a response body in place.
package handlers
