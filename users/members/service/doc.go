// Package service is a small member service: for trying pinion out, and for tests that
// need one that is slow, fails, hangs or talks nonsense. It speaks what package members
// asks for. Its members are made by a function, so it stores nothing.
//
// A request is GET /members?ids=1,2,3 with 1 to 256 positive ids. Knobs apply to each
// request by themselves, and may be turned while the service runs: a request that hangs
// or sleeps under the old ones is then answered at once, with 503.
package service
