package openloop

import (
	"bytes"
	"errors"
	"fmt"
)

// Why an answer is refused. Each ends the run.
var (
	ErrMalformed = errors.New("malformed answer")
	ErrHead      = errors.New("answer with a head above 16 KiB")
	ErrChunked   = errors.New("answer with a transfer encoding, want Content-Length")
	ErrLength    = errors.New("answer without Content-Length")
	ErrSwitched  = errors.New("answer that switches the protocol")
)

// maxHead is the most bytes a head may have, its empty line included.
const maxHead = 16 << 10

// answer is what the head of one says.
type answer struct {
	status int
	length int64 // bytes of the body that follow
	close  bool  // the connection ends after it
}

// reader finds where the answers on a connection end, however they are cut.
type reader struct {
	bodiless bool
	held     []byte // the beginning of a head
	body     bool   // the head is done
	left     int64  // bytes of the body to come
	got      answer // after feed said done; until then its head, or the last one's
}

// reset makes it ready for another connection.
func (r *reader) reset() { *r = reader{bodiless: r.bodiless, held: r.held[:0]} }

// feed takes the next bytes of the connection, returns how many belonged to the answer,
// and whether that is complete. It keeps none of b.
func (r *reader) feed(b []byte) (used int, done bool, err error) {
	for {
		if r.body {
			n := min(r.left, int64(len(b)-used))
			r.left -= n
			used += int(n)
			r.body = r.left > 0
			return used, !r.body, nil
		}
		head, n, err := r.head(b[used:])
		used += n
		if err != nil || head == nil {
			return used, false, err
		}
		r.got, err = parse(head, r.bodiless)
		r.held = r.held[:0]
		if err != nil {
			return used, false, err
		}
		r.left, r.body = r.got.length, r.got.status >= 200
	}
}

// head returns the head if b completes it, and how many bytes of b were used.
func (r *reader) head(b []byte) (head []byte, used int, err error) {
	const begin, end = "HTTP/1.", "\r\n\r\n"
	whole := b
	before := len(r.held)
	if before > 0 {
		r.held = append(r.held, b[:min(len(b), maxHead-before)]...)
		whole = r.held
	}
	// Told early: what is not HTTP may have no empty line to wait for.
	if n := min(len(whole), len(begin)); string(whole[:n]) != begin[:n] {
		return nil, 0, fmt.Errorf("%w: it begins with %q", ErrMalformed, whole[:min(len(whole), 80)])
	}
	from := max(0, before-len(end)+1)
	i := bytes.Index(whole[from:], []byte(end))
	switch i += from + len(end); {
	case i < from+len(end): // none
		if len(whole) >= maxHead {
			return nil, 0, ErrHead
		}
		if before == 0 {
			r.held = append(r.held, b...)
		}
		return nil, len(b), nil
	case i > maxHead:
		return nil, 0, ErrHead
	}
	return whole[:i], i - before, nil
}

// parse reads a head, which ends in an empty line. It takes nothing that
// http.ReadResponse does not take or takes for something else.
func parse(head []byte, bodiless bool) (a answer, err error) {
	refuse := func(err error, line []byte) (answer, error) {
		return answer{}, fmt.Errorf("%w: %q", err, line[:min(len(line), 80)])
	}
	line, rest, _ := bytes.Cut(head[:len(head)-2], []byte("\r\n"))
	// HTTP/1.1 200 and a reason or none: RFC 9112, section 4.
	if len(line) < 12 || line[7] != '0' && line[7] != '1' || line[8] != ' ' || len(line) > 12 && line[12] != ' ' || !visible(line) {
		return refuse(ErrMalformed, line)
	}
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return refuse(ErrMalformed, line)
		}
		a.status = a.status*10 + int(c-'0')
	}
	if a.status < 100 {
		return refuse(ErrMalformed, line)
	}
	if a.status == 101 {
		return refuse(ErrSwitched, line)
	}
	a.length = -1
	keep := line[7] == '1'
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		name, value, found := bytes.Cut(line, []byte(":"))
		value = bytes.Trim(value, " \t")
		if !found || !token(name) || !visible(value) {
			return refuse(ErrMalformed, line)
		}
		// Most names are none of these, and of another length.
		switch {
		case len(name) == len("Content-Length") && is(name, "Content-Length"):
			n, ok := digits(value)
			if !ok || a.length >= 0 && n != a.length {
				return refuse(ErrMalformed, line)
			}
			a.length = n
		case len(name) == len("Transfer-Encoding") && is(name, "Transfer-Encoding"):
			return refuse(ErrChunked, line)
		case len(name) == len("Connection") && is(name, "Connection"):
			closes, keeps := options(value)
			a.close = a.close || closes
			keep = keep || keeps
		}
	}
	a.close = a.close || !keep
	switch {
	case bodiless, a.status < 200, a.status == 204, a.status == 304:
		a.length = 0 // RFC 9112, section 6.3
	case a.length < 0:
		return refuse(ErrLength, head[:len(head)-4])
	}
	return a, nil
}

// options reads the value of a Connection field.
func options(value []byte) (closes, keeps bool) {
	for len(value) > 0 {
		var option []byte
		option, value, _ = bytes.Cut(value, []byte(","))
		option = bytes.Trim(option, " \t")
		closes = closes || is(option, "close")
		keeps = keeps || is(option, "keep-alive")
	}
	return closes, keeps
}

// is compares without regard to case. bytes.EqualFold would also take a Kelvin sign for a k.
func is(b []byte, ascii string) bool {
	if len(b) != len(ascii) {
		return false
	}
	for i, c := range b {
		d := ascii[i]
		if c != d && (c|0x20 != d|0x20 || d|0x20 < 'a' || d|0x20 > 'z') {
			return false
		}
	}
	return true
}

// digits reads a length: digits and nothing else, below 2^63.
func digits(b []byte) (n int64, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' || n > (1<<63-1-9)/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(b) > 0
}
