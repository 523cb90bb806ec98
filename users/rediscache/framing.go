package rediscache

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrProtocol says that Redis, or whatever answers in its place, sent what cannot be an
// answer.
var ErrProtocol = errors.New("not an answer of Redis")

// Limits of one value. Redis itself would allow strings of 512 MiB.
const (
	maxLine     = 64 << 10 // bytes of a simple string, an error or a length
	maxBulk     = 64 << 20 // bytes of a string
	maxElements = 1 << 20  // of all arrays, maps and sets in one value
	maxDepth    = 8
)

// framing follows a stream of RESP values (redis.io/docs/reference/protocol-spec) from
// byte to byte, and counts those that are complete. It knows what Redis sends, which is
// less than what the protocol allows: no streamed values and no attributes. The zero
// value is at the start of a stream.
type framing struct {
	pushes bool // invalidations may come, and no other push

	line     []byte  // of the header that is being read
	bulk     int64   // bytes of a string and its CRLF that are still to come
	missing  []int64 // elements that each open array still lacks, outermost first
	elements int64   // in the value so far
	push     int     // elements of a push that have begun; 0 outside
	expect   string  // what the string that is being read must be; "" for anything
}

// pushKind is the only push that is let through, as the first element names it.
const pushKind = "invalidate"

// feed reads on, and returns how many values other than pushes have become complete.
func (f *framing) feed(b []byte) (complete int, err error) {
	for len(b) > 0 {
		if f.bulk > 0 {
			n := min(f.bulk, int64(len(b)))
			if err := f.content(b[:n]); err != nil {
				return complete, err
			}
			b = b[n:]
			if f.bulk == 0 && f.end() {
				complete++
			}
			continue
		}
		i := bytes.IndexByte(b, '\n')
		n := i + 1
		if i < 0 {
			n = len(b)
		}
		if len(f.line)+n > maxLine {
			return complete, fmt.Errorf("%w: a line of more than %d bytes", ErrProtocol, maxLine)
		}
		f.line = append(f.line, b[:n]...)
		b = b[n:]
		if i < 0 {
			if !isType(f.line[0]) { // no need to wait for the rest
				return complete, f.wrong("no type of a value")
			}
			continue
		}
		ended, err := f.header()
		f.line = f.line[:0]
		if err != nil {
			return complete, err
		}
		if ended && f.end() {
			complete++
		}
	}
	return complete, nil
}

func (f *framing) wrong(what string) error {
	const most = 32
	return fmt.Errorf("%w: %s: %q", ErrProtocol, what, f.line[:min(most, len(f.line))])
}

// content takes part of a string: its text, then CRLF.
func (f *framing) content(b []byte) error {
	if n := min(f.bulk-2, int64(len(b))); n > 0 {
		if f.expect != "" {
			if !strings.HasPrefix(f.expect, string(b[:n])) {
				return fmt.Errorf("%w: a push of another kind", ErrProtocol)
			}
			f.expect = f.expect[n:]
		}
		f.bulk -= n
		b = b[n:]
	}
	for _, c := range b {
		if c != "\n\r"[f.bulk-1] {
			return fmt.Errorf("%w: a string that does not end where it should", ErrProtocol)
		}
		f.bulk--
	}
	return nil
}

// header reads the line that begins a value, and reports whether it is all of it.
func (f *framing) header() (ended bool, err error) {
	line, ok := bytes.CutSuffix(f.line, []byte("\r\n"))
	if !ok || len(line) == 0 {
		return false, f.wrong("a line that does not end in CRLF")
	}
	kind, text := line[0], line[1:]
	if kind == '>' {
		return false, f.beginPush(text)
	}
	if f.push > 0 && len(f.missing) == 1 {
		if f.push++; f.push == 2 {
			f.expect = pushKind
			if string(line) != "$"+strconv.Itoa(len(pushKind)) {
				return false, f.wrong("a push of another kind")
			}
		} else if kind != '*' && kind != '_' {
			return false, f.wrong("a push of something else than keys")
		}
	}
	switch kind {
	case '+', '-', '(', ',':
		return true, nil
	case ':':
		if !isInteger(text) {
			return false, f.wrong("no number")
		}
		return true, nil
	case '_':
		if len(text) != 0 {
			return false, f.wrong("no null")
		}
		return true, nil
	case '#':
		if string(text) != "t" && string(text) != "f" {
			return false, f.wrong("no boolean")
		}
		return true, nil
	case '$', '!', '=':
		return f.string(kind, text)
	case '*', '~', '%':
		return f.array(kind, text)
	}
	return false, f.wrong("no type of a value")
}

func isType(c byte) bool { return strings.IndexByte("+-(,:_#$!=*~%>", c) >= 0 }

func isInteger(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("-"))
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0 && len(text) < 20
}

// length reads the length of a string or an array. -1 is the null of RESP2.
func (f *framing) length(text []byte, most int64) (n int64, null bool, err error) {
	if string(text) == "-1" {
		return 0, true, nil
	}
	for _, c := range text {
		if c < '0' || c > '9' || n > most {
			return 0, false, f.wrong("no length, or too much")
		}
		n = n*10 + int64(c-'0')
	}
	if len(text) == 0 || n > most {
		return 0, false, f.wrong("no length, or too much")
	}
	return n, false, nil
}

func (f *framing) string(kind byte, text []byte) (ended bool, err error) {
	n, null, err := f.length(text, maxBulk)
	if err != nil || null && kind == '$' {
		return null, err
	}
	if null {
		return false, f.wrong("no length")
	}
	f.bulk = n + 2
	return false, nil
}

func (f *framing) array(kind byte, text []byte) (ended bool, err error) {
	n, null, err := f.length(text, maxElements)
	if err != nil || null && kind == '*' {
		return null, err
	}
	if null {
		return false, f.wrong("no length")
	}
	if kind == '%' {
		n *= 2
	}
	return n == 0, f.open(n)
}

// open begins an array of n elements; an empty one does not stay open.
func (f *framing) open(n int64) error {
	if f.elements += n; f.elements > maxElements {
		return fmt.Errorf("%w: more than %d elements", ErrProtocol, maxElements)
	}
	if n == 0 {
		return nil
	}
	if len(f.missing) == maxDepth {
		return fmt.Errorf("%w: nested more than %d deep", ErrProtocol, maxDepth)
	}
	f.missing = append(f.missing, n)
	return nil
}

func (f *framing) beginPush(text []byte) error {
	if !f.pushes || len(f.missing) > 0 || string(text) != "2" {
		return f.wrong("a push that nobody asked for")
	}
	f.push = 1
	return f.open(2)
}

// end closes a value, and all that end with it. It reports whether that was a whole one,
// and no push.
func (f *framing) end() bool {
	for last := len(f.missing) - 1; last >= 0; last-- {
		if f.missing[last]--; f.missing[last] > 0 {
			return false
		}
		f.missing = f.missing[:last]
	}
	push := f.push > 0
	f.push, f.elements = 0, 0
	return !push
}
