// Package transport is the seam between a [fasthttp.RequestHandler] and the
// sockets it is served on: something that serves an open listener until it is
// told to stop. main picks one by -engine and knows no more of it.
//
// [FastHTTP] is fasthttp.Server, with four things added that an exposed server
// needs and fasthttp leaves to its caller: running out of descriptors pauses
// accepting instead of ending the server; an error answer is not lost to a
// reset when the client is still sending; a graceful stop that runs out of time
// closes what is left; and a connection that is one too many, or a body that is
// announced as too large, is refused in the caller's words.
//
// # Lifecycle
//
// NewFastHTTP, then Serve once, which blocks; then Shutdown once, from another
// goroutine, which makes Serve return nil. Shutdown may come first: then Serve
// returns at once.
package transport
