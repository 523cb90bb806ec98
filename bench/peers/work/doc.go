// Package work is what all peers have in common: the payloads of their routes, the users
// they answer with, and the flags they take. A peer adds its framework and nothing else, so
// that a difference between two of them is one between frameworks.
//
//	GET  /api/ping              {"status":"ok"}
//	GET  /json?id=N             an Order, about 1 KiB, made from N for each request
//	GET  /api/users?ids=1,2,3   Found, for users in a map: structs, but for fasthttp+fragments
//	POST /json                  a Purchase of 200 bytes, answered with its Receipt
//	GET  /sleep                 {"status":"ok"} after a millisecond
//
// An Exchange is a request with the body that must come back. It is made with
// encoding/json, whatever a peer uses. No string holds what encoding/json escapes and
// others do not (<, > and &).
package work
