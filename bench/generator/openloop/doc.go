// Package openloop sends HTTP/1.1 requests at times that are fixed beforehand, and counts
// the latency of each from when it was due.
//
// A closed loop, such as wrk, sends the next request of a connection when the answer to
// the last has come. A server that stops for 100 ms delays one request a connection
// there; the hundreds that users would have sent meanwhile are never sent, and so never
// seen to wait. Gil Tene calls it coordinated omission. Here a request that is due while
// no connection is free waits, and its wait counts. (Stall has what theory expects.)
//
// # Method
//
//   - One event loop a thread: non-blocking sockets and epoll, locked to an OS thread, no
//     goroutine a connection, nothing allocated a request, no pipelining. A loop wants a
//     CPU of its own: give it one with taskset(1), and not one of the server's.
//   - What waits for a connection is kept nowhere: the schedule is a function of the
//     request's number, and a loop that lags merely stands further back in it.
//   - An answer has come when it has been read, not when the kernel had it. A loop that is
//     short of CPU thus makes the server look worse, never better.
//   - Each request that was due is in the histogram once, with the time until its end was
//     known: answered, failed, or given up. A request that failed at once is as short as
//     one that was answered at once; look at the errors before the latency.
//   - The generator's own lag is counted apart: how late it sent what was due and had a
//     free connection. From it, from how busy the loop was, and from how long others had
//     its CPU follows whether it kept up. A hypervisor that takes the CPU away is not seen.
//
// # Limits
//
// Answers must have a Content-Length, and a head of at most 16 KiB. One that is chunked,
// ends with the connection, switches the protocol or is not HTTP ends the run with an
// error: what cannot be framed cannot be counted. Interim answers (1xx) are skipped.
//
// The loops need Linux; elsewhere Run returns errors.ErrUnsupported.
package openloop
