// Package admin is the private port: metrics, profiles, liveness and readiness, over
// net/http. It is the cold path, and shares nothing with the public port but the
// numbers and states it shows.
//
// # Cells
//
// With Config.Fleet it is the one private port of a supervisor and its cells. A cell
// serves a private port of its own, on whatever Config.Listener is, and the supervisor
// asks it over connections from Fleet.Dial:
//
//   - /metrics scrapes all cells at once and shows all series with the label cell: a
//     number, or "supervisor" for its own, unless a series of its own names a cell
//     already. A cell that does not answer within 5 s, or answers nonsense, costs its
//     own series, and has cell_scrape_failed 1. One that has no process is absent.
//     Where two cells disagree about a family, the first is right: its help stands for
//     both, and of another type nothing is shown.
//   - /ready is 200 if every cell is ready and says so itself; else the reason names the
//     first that is not.
//   - /health is 503 only if a cell that is ready or draining does not say within 2 s
//     that it lives. One that starts or restarts is the supervisor's business.
//   - Any path with ?cell=N is answered by that cell, in the time that the profile takes
//     and 30 s, or in 5 s for a page that is no profile.
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
