package engine

import (
	"errors"
	"fmt"
	"os"

	"github.com/valyala/fasthttp"
)

var (
	// ErrServerClosed is returned by Serve after Shutdown.
	ErrServerClosed = errors.New("engine: server closed")

	// ErrClientGone is the cause (context.Cause) of a request context that
	// ended because the client closed or reset its connection.
	ErrClientGone = errors.New("engine: client gone")

	// ErrShutdown is the cause of a request context that ended because a
	// shutdown ran out of time.
	ErrShutdown = errors.New("engine: shutdown ran out of time")
)

// An Error is a request that the engine refused, or whose handler panicked. It
// is what Server.ErrorHandler receives; the connection closes after the answer.
type Error struct {
	// Status is the HTTP status that fits the refusal.
	Status int

	// Reason says in a few words what was wrong. It never quotes the client.
	Reason string

	// Err is the cause, when there is one: fasthttp.ErrBodyTooLarge, an error
	// of fasthttp's parser, os.ErrDeadlineExceeded.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("engine: request refused with %d: %s: %v", e.Status, e.Reason, e.Err)
	}
	return fmt.Sprintf("engine: request refused with %d: %s", e.Status, e.Reason)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// HTTPStatus returns Status, for handlers of errors that do not know this
// package.
func (e *Error) HTTPStatus() int { return e.Status }

// HTTPReason returns Reason; see HTTPStatus.
func (e *Error) HTTPReason() string { return e.Reason }

// The refusals of framing. They are shared and never written to.
var (
	errRequestLine = &Error{Status: fasthttp.StatusBadRequest, Reason: "malformed request line"}
	errTarget      = &Error{Status: fasthttp.StatusBadRequest, Reason: "malformed request target"}
	errVersion     = &Error{Status: fasthttp.StatusHTTPVersionNotSupported, Reason: "unsupported HTTP version"}
	errLineEnd     = &Error{Status: fasthttp.StatusBadRequest, Reason: "a line does not end in CRLF"}
	errFieldName   = &Error{Status: fasthttp.StatusBadRequest, Reason: "malformed field name"}
	errFieldValue  = &Error{Status: fasthttp.StatusBadRequest, Reason: "malformed field value"}
	errHost        = &Error{Status: fasthttp.StatusBadRequest, Reason: "missing, repeated or malformed Host"}
	errLength      = &Error{Status: fasthttp.StatusBadRequest, Reason: "malformed or repeated Content-Length"}
	errBothLengths = &Error{Status: fasthttp.StatusBadRequest, Reason: "Content-Length with Transfer-Encoding"}
	errCoding      = &Error{Status: fasthttp.StatusNotImplemented, Reason: "unknown transfer coding"}
	errCodingTwice = &Error{Status: fasthttp.StatusBadRequest, Reason: "repeated Transfer-Encoding"}
	errCodingIn10  = &Error{Status: fasthttp.StatusBadRequest, Reason: "Transfer-Encoding in an HTTP/1.0 request"}
	errExpectation = &Error{Status: fasthttp.StatusExpectationFailed, Reason: "unknown expectation"}
	errLongTarget  = &Error{Status: fasthttp.StatusRequestURITooLong, Reason: "request line too long"}
	errLongHead    = &Error{Status: fasthttp.StatusRequestHeaderFieldsTooLarge, Reason: "head too large"}
	errBodySize    = &Error{Status: fasthttp.StatusRequestEntityTooLarge, Reason: "body too large", Err: fasthttp.ErrBodyTooLarge}
	errChunk       = &Error{Status: fasthttp.StatusBadRequest, Reason: "malformed chunk"}
	errTrailers    = &Error{Status: fasthttp.StatusRequestHeaderFieldsTooLarge, Reason: "trailers too large"}
	errTruncated   = &Error{Status: fasthttp.StatusBadRequest, Reason: "request cut short"}
	errSlow        = &Error{Status: fasthttp.StatusRequestTimeout, Reason: "request took too long", Err: os.ErrDeadlineExceeded}
	errHijack      = &Error{Status: fasthttp.StatusInternalServerError, Reason: "hijack of a request that did not ask for an upgrade"}
	errPanicked    = &Error{Status: fasthttp.StatusInternalServerError, Reason: "handler panicked"}
)
