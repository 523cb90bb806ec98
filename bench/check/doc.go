// Package check proves that a server answers what it should, before anything about it is
// timed: a comparison of servers that do not do the same work says nothing.
//
// Of every route a peer has: status, the head field by field, a Date that is right and goes
// on, and the body byte by byte, for several requests whose answers differ; a request that
// arrives in two pieces; a second request on a connection; pipelined requests in order;
// many connections at once, whose answers must not get mixed up; Connection: close, with
// the first request and with a later one; a path that is not there; and that the route
// which sleeps does so without keeping others from it. A floor that parses nothing is let
// off with pieces and unknown paths.
//
// What it cannot prove is that a server answers the same later, when it is measured. So
// Check returns sizes, which the bytes of a measurement can be compared with.
//
// The client is of its own, on a plain connection, because libraries forgive much.
package check
