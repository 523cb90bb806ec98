// Package check proves that a server answers what it should, before anything about it is
// timed: a comparison of servers that do not do the same work says nothing.
//
// Of every route a peer has: status, Content-Type, Content-Length, a Date that is right,
// and the body byte by byte, for several requests whose answers differ; a body that
// arrives in two pieces; a second request on a connection; pipelined requests in order;
// Connection: close; a path that is not there.
//
// The client is of its own, on a plain connection, because libraries forgive much.
package check
