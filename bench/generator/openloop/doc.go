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
//     free connection, and how late it read what the kernel had (SO_TIMESTAMPNS
//     after a sleep, and the time since the last look when awake). What is sent late goes out in a burst, in which requests wait for each other; so its lag is
//     also charged to what follows, until an answer shows that nothing waits any more.
//   - It kept up if without all that the p99 would be less by a tenth at most: an upper
//     bound of its own part, whoever took the CPU away, a hypervisor included. The figures
//     have that part all the same. Of the CPU of the server nothing is known here: a p99
//     of milliseconds from a generator that kept up may be others on that.
//   - The p99 of a second is that of the worst 10 ms in it, and so often one event's.
//     Compare medians of several runs, or longer ones.
//
// # Limits
//
// Answers must have a Content-Length, and a head of at most 16 KiB. One that is chunked,
// ends with the connection, switches the protocol or is not HTTP ends the run with an
// error: what cannot be framed cannot be counted. Interim answers (1xx) are skipped.
//
// The loops need Linux; elsewhere Run returns errors.ErrUnsupported.
package openloop
