package config

import (
	"fmt"
	"strings"
)

// UsageError is a mistake in what the user wrote, for exit status 2. It wraps the
// reason.
type UsageError struct {
	// Source says where: -flag, PINION_FLAG, file, file:line or "file:line: key". It is
	// empty for a mistake in the command line as a whole.
	Source string
	Err    error
}

// Error is one line, whatever the user wrote.
func (e *UsageError) Error() string {
	if e.Source != "" {
		return OneLine(e.Source + ": " + e.Err.Error())
	}
	return OneLine(e.Err.Error())
}

// OneLine replaces the control characters of s, line breaks among them, by spaces.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// Unwrap is the reason.
func (e *UsageError) Unwrap() error { return e.Err }

func usagef(source, format string, args ...any) error {
	return &UsageError{Source: source, Err: fmt.Errorf(format, args...)}
}
