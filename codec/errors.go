package codec

import (
	"fmt"
	"strconv"
)

// A SyntaxError says where and why a document was refused.
type SyntaxError struct {
	Offset int    // bytes before the fault; the length of the body if it ended too soon
	Reason string // safe to show to the sender: what it quotes is escaped and cut short
}

// Error implements error.
func (e *SyntaxError) Error() string {
	return "at byte " + strconv.Itoa(e.Offset) + ": " + e.Reason
}

// A TypeError says that a value is not of the kind it was read as.
type TypeError struct {
	Want Kind
	Got  Kind
	// Number is the start of the number as it was written, when an Integer was
	// wanted and a Number with a fraction, an exponent or too many digits was
	// there. Else it is empty.
	Number string
}

// Error implements error.
func (e *TypeError) Error() string {
	if e.Number != "" {
		return "want " + e.Want.phrase() + ", got " + e.Number
	}
	return "want " + e.Want.phrase() + ", got " + e.Got.phrase()
}

// maxQuoted caps what an error repeats of a document, in bytes.
const maxQuoted = 32

// cut shortens text to what an error may repeat.
func cut(text []byte) string {
	if len(text) > maxQuoted {
		return string(text[:maxQuoted]) + "..."
	}
	return string(text)
}

// quote makes text fit to be shown: ASCII only, in quotes, cut short.
func quote(text []byte) string {
	return strconv.QuoteToASCII(cut(text))
}

// quoteByte names one byte of a document.
func quoteByte(c byte) string {
	if c > ' ' && c < 0x7f {
		return strconv.QuoteRune(rune(c))
	}
	return fmt.Sprintf("byte 0x%02x", c)
}
