package accesslog

import (
	"fmt"
	"strconv"
	"strings"
)

// Mode says which requests get a line. The zero value is off.
type Mode struct {
	kind kind
	n    uint64 // of sample: one of every n
}

type kind uint8

const (
	off kind = iota
	all
	errorsOnly
	sample
)

// Off is the Mode that logs nothing.
func Off() Mode { return Mode{} }

// All is the Mode that logs every request.
func All() Mode { return Mode{kind: all} }

// Errors is the Mode that logs every request answered with a status of 400 or more.
func Errors() Mode { return Mode{kind: errorsOnly} }

// ParseMode reads off, all, errors (a status of 400 or more) or 1/N: one of every N
// requests, and all that were answered with 500 or more. N is at least 1.
func ParseMode(s string) (Mode, error) {
	switch s {
	case "off":
		return Off(), nil
	case "all":
		return All(), nil
	case "errors":
		return Errors(), nil
	}
	if digits, ok := strings.CutPrefix(s, "1/"); ok {
		// Not ParseUint alone: it takes a sign of +.
		if n, err := strconv.ParseUint(digits, 10, 63); err == nil && n >= 1 && digits[0] != '+' {
			return Mode{kind: sample, n: n}, nil
		}
	}
	return Mode{}, fmt.Errorf("want off, all, errors or 1/N, got %q", s)
}

// String is the form that ParseMode reads.
func (m Mode) String() string {
	switch m.kind {
	case all:
		return "all"
	case errorsOnly:
		return "errors"
	case sample:
		return "1/" + strconv.FormatUint(m.n, 10)
	}
	return "off"
}
