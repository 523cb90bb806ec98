// Package accesslog writes one JSON line per request without ever making a request
// wait.
//
// # Lifecycle
//
// New starts one goroutine that writes. For each request, Log.Wants says whether a
// line is due, and Log.Record renders it into a slot of a fixed ring. The goroutine
// gathers what is in the ring and hands it to the io.Writer in pieces of whole lines, of
// at most Config.BatchBytes, or whatever is there 20 ms after the first line. Log.Close
// writes the rest.
//
// # When the writer is slow or fails
//
// A full ring means that the line is dropped and counted, as are the lines of a
// failed write: every recorded line is either in access_log_written_total or in
// access_log_dropped_total. Failures are reported through slog when they begin and
// when they end, never by line.
//
// # A line
//
//	{"time":"2026-01-02T15:04:05.678Z","request_id":"…","remote":"192.0.2.1:4711","method":"GET","path":"/api/users",
//	"query":"ids=1","handler":"users","status":200,"bytes":123,"duration_us":45}
//
// It is always one line of valid JSON, whatever bytes a client sent: invalid UTF-8
// becomes U+FFFD. Text is cut after 1 KiB; path_len or query_len then tells how long
// it was. An empty request_id, remote or query is left out. A handler that panicked
// adds "panic":true. Config.Cell adds "cell" at the end. A line that would not fit in
// one Write, since a client sent many characters that must be escaped, has its texts cut
// after 64 bytes.
//
// # Caveats
//
// Path and query are logged as they came. What must not be in a log must not be in a
// URL.
//
// Processes that write to one pipe tear each other's lines unless each sets BatchBytes
// to MinBatchBytes. A write that fails half-way, which a pipe's never does at that size,
// leaves a broken line, which the next write ends.
package accesslog
