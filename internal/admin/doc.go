// Package admin is the private port: metrics, profiles, liveness and readiness, over
// net/http. It is the cold path, and shares nothing with the public port but the
// numbers and states it shows.
//
// # Lifecycle
//
// New, then Listen, then Serve in a goroutine of its own, then Shutdown. It should
// come up before the public port and go down after it, so that what happens in
// between can be seen.
//
// # Caveats
//
// Whoever can reach the port can read the command line and memory addresses, and can
// make the process spend CPU time on profiles: bind it to a loopback address, a Unix
// socket or a private network.
//
// Importing net/http/pprof also registers its handlers on http.DefaultServeMux. This
// package serves a mux of its own and never that one; neither may any other.
package admin
