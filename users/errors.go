package users

import "errors"

// ErrNotFound says that no user has the id.
var ErrNotFound = errors.New("user not found")

// ErrUnavailable says that a source could not answer. Errors that match it wrap
// the source's own error, except for the context errors of a shared load: those
// are not the caller's, so errors.Is with context.Canceled or
// context.DeadlineExceeded is true only when the caller's own context ended.
var ErrUnavailable = errors.New("source unavailable")

// ErrCallerDeadline is for context.WithDeadlineCause: the cause of a deadline that the
// caller chose. A source that does not meet it has not failed; one that does not meet
// any other deadline has.
var ErrCallerDeadline = errors.New("the caller's deadline has passed")

// ErrUnknownOutcome says that a write may or may not have been stored: the connection
// was lost, or the time was up, after the store had been asked to commit. Nothing but a
// read, or the same write again under the same key, tells.
var ErrUnknownOutcome = errors.New("the outcome of the write is unknown")

// ErrStored says that a write is stored, and only its result could not be read back.
var ErrStored = errors.New("the write is stored, but could not be read back")

// ErrKeyReused says that NewUser.Key was used before for a user of other content.
var ErrKeyReused = errors.New("the key was used before for other content")

// ErrBreakerOpen says that a source was not asked, because it has been failing. Errors
// that match it match ErrUnavailable too.
var ErrBreakerOpen = errors.New("circuit breaker is open")

// ErrOverloaded says that a source was not asked, because as many calls of it as are
// allowed were in flight until the time was up. Errors that match it match
// ErrUnavailable too.
var ErrOverloaded = errors.New("too many calls in flight")

// FieldError says which input field was refused and why. Neither text holds
// what the caller sent, so both are safe to show.
type FieldError struct {
	Field  string // name on the wire, as in "city_id"
	Reason string // as in "must not be empty"
}

// Error returns "field: reason".
func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }
