package members

import (
	"errors"
	"strconv"
)

// ErrAnswer is wrapped by every [AnswerError].
var ErrAnswer = errors.New("wrong answer of the member service")

// ErrURL says that a base URL is not one that New takes.
var ErrURL = errors.New("wrong URL of the member service")

// ErrClosed says that the Client is closed.
var ErrClosed = errors.New("client of the member service is closed")

// AnswerError says what was wrong with an answer of the member service. It matches
// ErrAnswer, and what Err matches.
type AnswerError struct {
	Status int    // of the answer; 0 if it had none that could be read
	Reason string // what it quotes of the answer is escaped and cut short
	Err    error  // may be nil
}

// Error names the status, unless it is 200, and the reason.
func (e *AnswerError) Error() string {
	text := ErrAnswer.Error() + ": "
	if e.Status != 0 && e.Status != statusOK {
		text += "status " + strconv.Itoa(e.Status) + ": "
	}
	text += e.Reason
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns ErrAnswer and Err.
func (e *AnswerError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrAnswer}
	}
	return []error{ErrAnswer, e.Err}
}
