package engine

import (
	"bytes"
	"encoding/binary"
	"net/netip"
)

// verdict is what framing knows about the bytes it has seen.
type verdict uint8

const (
	needMore    verdict = iota // the request is not complete yet
	askContinue                // the client waits for 100 Continue; asked once
	complete                   // the request is complete
	promote                    // fasthttp.Server has to take the connection
	refuse                     // framing.err says why
)

// limits bound one request.
type limits struct {
	head   int   // bytes of request line, fields and the empty line
	body   int64 // bytes of a decoded body
	inline int64 // bodies longer than this are promoted; 0 means none
}

// framing finds the end of one request in the bytes received so far and
// refuses what RFC 9110 and RFC 9112 forbid. It looks at every byte once, in
// order, so the answer does not depend on how the bytes were cut into reads.
// Field values of a complete head are left to fasthttp's parser.
//
// The zero value is ready for the first byte of a request.
type framing struct {
	err *Error

	pos   int // first byte not looked at
	line  int // start of the line being received
	start int // request line, after the empty lines before it
	head  int // end of the head; 0 while it is incomplete

	length  int64 // Content-Length; valid with hasLength
	body    int64 // decoded bytes of the body so far (chunked)
	chunks  chunks
	version uint8 // minor version

	hasLength bool
	chunked   bool
	hasHost   bool
	expect    bool
	upgrade   bool // an Upgrade field that is not h2c
	connUp    bool // Connection: upgrade; both count in HTTP/1.1 only
	connect   bool // method CONNECT
	asked     bool
}

// end returns the number of bytes the complete request takes in the stream.
func (f *framing) end() int {
	if f.chunked {
		return f.pos
	}
	return f.head + int(f.length)
}

// headBytes returns the head in b without the empty lines before it, nil while
// it is incomplete.
func (f *framing) headBytes(b []byte) []byte {
	if f.head == 0 {
		return nil
	}
	return b[f.start:f.head]
}

// bodyBytes returns the decoded body of the complete request in b.
func (f *framing) bodyBytes(b []byte) []byte {
	if f.chunked {
		return b[f.head : f.head+int(f.body)]
	}
	return b[f.head : f.head+int(f.length)]
}

// advance looks at the bytes of b that it has not seen. b begins with the
// first byte of the request. Chunked bodies are decoded in place.
func (f *framing) advance(b []byte, lim *limits) verdict {
	if f.head == 0 {
		if v := f.scanHead(b, lim); v != complete {
			return v
		}
	}
	// An upgrade may be ignored (RFC 9110 section 7.8), and is on a request with a
	// body: fasthttp.Server takes memory for all of a body before it has come.
	bare := !f.chunked && f.length == 0
	if f.connect || f.upgrade && f.connUp && f.version == 1 && bare || lim.inline > 0 && (f.chunked || f.length > lim.inline) {
		return promote
	}
	if f.expect && !f.asked {
		f.asked = true
		return askContinue
	}
	if f.chunked {
		return f.scanChunks(b, lim)
	}
	if int64(len(b)-f.head) < f.length {
		return needMore
	}
	return complete
}

func (f *framing) fail(err *Error) verdict {
	f.err = err
	return refuse
}

func (f *framing) scanHead(b []byte, lim *limits) verdict {
	window := b
	if len(window) > lim.head {
		window = window[:lim.head]
	}
	for {
		i := lineFeed(window[f.pos:])
		if i < 0 {
			f.pos = len(window)
			if len(window) < lim.head {
				return needMore
			}
			if !f.hasRequestLine() {
				return f.fail(errLongTarget)
			}
			return f.fail(errLongHead)
		}
		end := f.pos + i
		if end == f.line || window[end-1] != '\r' {
			return f.fail(errLineEnd)
		}
		line := window[f.line : end-1]
		switch {
		case !f.hasRequestLine():
			// RFC 9112 section 2.2 asks to skip empty lines before the
			// request line; the head limit bounds them.
			if len(line) > 0 {
				if err := f.requestLine(line); err != nil {
					return f.fail(err)
				}
				f.start = f.line
				f.line = end + 1
			} else {
				f.line = end + 1
				f.start = f.line
			}
		case len(line) > 0:
			if err := f.field(line); err != nil {
				return f.fail(err)
			}
			f.line = end + 1
		default:
			f.head = end + 1
			f.pos = f.head
			f.line = f.head
			return f.closeHead(lim)
		}
		f.pos = end + 1
	}
}

// lineFeed returns the index of the first LF in b, or -1. It is asked once a
// line, and the lines that end heads are too short for the search.
func lineFeed(b []byte) int {
	if len(b) >= 2 && b[0] == '\r' && b[1] == '\n' {
		return 1
	}
	return bytes.IndexByte(b, '\n')
}

// hasRequestLine reports whether the request line was seen: only then does the
// current line begin after the start of the request.
func (f *framing) hasRequestLine() bool { return f.line > f.start }

// closeHead checks what only the whole head can tell.
func (f *framing) closeHead(lim *limits) verdict {
	if f.version == 1 && !f.hasHost {
		return f.fail(errHost)
	}
	if f.chunked {
		if f.version == 0 {
			return f.fail(errCodingIn10)
		}
		if f.hasLength {
			return f.fail(errBothLengths)
		}
		return complete
	}
	if f.length > lim.body {
		return f.fail(errBodySize)
	}
	return complete
}

// requestLine checks "method SP target SP HTTP/1.x" (RFC 9112 section 3).
func (f *framing) requestLine(line []byte) *Error {
	n := 0
	for n < len(line) && isToken(line[n]) {
		n++
	}
	if n == 0 || n == len(line) || line[n] != ' ' {
		return errRequestLine
	}
	method, rest := line[:n], line[n+1:]
	if len(rest) < len(" HTTP/1.1") {
		return errRequestLine
	}
	target, version := rest[:len(rest)-9], rest[len(rest)-9:]
	if string(version[:6]) != " HTTP/" || version[7] != '.' || !isDigit(version[6]) || !isDigit(version[8]) {
		return errRequestLine
	}
	switch string(version[6:]) {
	case "1.1":
		f.version = 1
	case "1.0":
	default:
		return errVersion
	}
	f.connect = string(method) == "CONNECT"
	if !validTarget(target, string(method) == "OPTIONS", f.connect) {
		return errTarget
	}
	return nil
}

// validTarget checks the four forms of RFC 9112 section 3.2.
func validTarget(target []byte, options, connect bool) bool {
	for _, c := range target {
		if !isTargetByte(c) {
			return false
		}
	}
	switch {
	case len(target) == 0:
		return false
	case connect:
		return validHost(target) && bytes.IndexByte(target, ':') > 0
	case target[0] == '/':
		return true
	case len(target) == 1 && target[0] == '*':
		return options
	}
	scheme, rest, ok := bytes.Cut(target, []byte("://"))
	if !ok || len(scheme) == 0 || !isAlpha(scheme[0]) {
		return false
	}
	for _, c := range scheme {
		if !isAlpha(c) && !isDigit(c) && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	if i := bytes.IndexAny(rest, "/?"); i >= 0 {
		rest = rest[:i]
	}
	return len(rest) > 0 && validHost(rest)
}

// field checks one field line and takes what framing needs from it.
func (f *framing) field(line []byte) *Error {
	colon := 0
	for colon < len(line) && isToken(line[colon]) {
		colon++
	}
	if colon == 0 || colon == len(line) || line[colon] != ':' {
		return errFieldName
	}
	name, value := line[:colon], line[colon+1:]
	if !validValue(value) {
		return errFieldValue
	}
	switch len(name) {
	case len("host"):
		if equalFold(name, "host") {
			value = trimSpace(value)
			if f.hasHost || !validHost(value) {
				return errHost
			}
			f.hasHost = true
		}
	case len("expect"):
		if equalFold(name, "expect") {
			if f.version == 0 { // RFC 9110 section 10.1.1: ignored
				return nil
			}
			if !equalFold(trimSpace(value), "100-continue") {
				return errExpectation
			}
			f.expect = true
		}
	case len("upgrade"):
		if equalFold(name, "upgrade") && !equalFold(trimSpace(value), "h2c") {
			f.upgrade = true
		}
	case len("connection"):
		if equalFold(name, "connection") && hasToken(value, "upgrade") {
			f.connUp = true
		}
	case len("content-length"):
		if equalFold(name, "content-length") {
			return f.contentLength(trimSpace(value))
		}
	case len("transfer-encoding"):
		if equalFold(name, "transfer-encoding") {
			if f.chunked {
				return errCodingTwice
			}
			if !equalFold(trimSpace(value), "chunked") {
				return errCoding
			}
			f.chunked = true
		}
	}
	return nil
}

// contentLength takes a plain decimal number, once (RFC 9112 section 6.3).
func (f *framing) contentLength(value []byte) *Error {
	const digits = 15 // far above any limit, far below overflow
	if f.hasLength || len(value) == 0 {
		return errLength
	}
	for len(value) > 1 && value[0] == '0' {
		value = value[1:]
	}
	if len(value) > digits {
		for _, c := range value {
			if !isDigit(c) {
				return errLength
			}
		}
		return errBodySize
	}
	for _, c := range value {
		if !isDigit(c) {
			return errLength
		}
		f.length = f.length*10 + int64(c-'0')
	}
	f.hasLength = true
	return nil
}

// validHost accepts uri-host [ ":" port ] of RFC 9110 section 7.2: no userinfo,
// no path, no white space, and no escapes, which no client sends and parsers
// disagree about.
func validHost(host []byte) bool {
	if len(host) == 0 {
		return false
	}
	var port []byte
	if host[0] == '[' {
		i := bytes.IndexByte(host, ']')
		if i < 2 {
			return false
		}
		if ip, err := netip.ParseAddr(string(host[1:i])); err != nil || !ip.Is6() || ip.Zone() != "" {
			return false
		}
		port = host[i+1:]
		if len(port) > 0 && port[0] != ':' {
			return false
		}
	} else {
		n := 0
		for n < len(host) && isHostByte(host[n]) {
			n++
		}
		if n < len(host) && host[n] != ':' || n == 0 {
			return false
		}
		port = host[n:]
	}
	if len(port) > len(":65535") {
		return false
	}
	for i, c := range port {
		if i > 0 && !isDigit(c) {
			return false
		}
	}
	return true
}

// validValue reports whether v has no control byte but HTAB (RFC 9110 section
// 5.5). Eight bytes are tested at a time, since long cookies are common; the last
// eight overlap those before them.
func validValue(v []byte) bool {
	if n := len(v); n >= 8 {
		last := v[n-8:]
		for len(v) > 8 && plain(binary.LittleEndian.Uint64(v)) {
			v = v[8:]
		}
		if len(v) <= 8 && plain(binary.LittleEndian.Uint64(last)) {
			return true
		}
	}
	for _, c := range v {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// plain reports whether none of the eight bytes of w is a control byte.
func plain(w uint64) bool {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	low := (w - ones*0x20) &^ w & highs // some byte is below 0x20
	del := w ^ ones*0x7f
	del = (del - ones) &^ del & highs // some byte is 0x7f
	return low|del == 0
}

// equalFold compares b with an ASCII string in lower case.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// hasToken reports whether a comma-separated list holds the token.
func hasToken(list []byte, lower string) bool {
	for len(list) > 0 {
		var item []byte
		item, list, _ = bytes.Cut(list, []byte(","))
		if equalFold(trimSpace(item), lower) {
			return true
		}
	}
	return false
}

func trimSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// empty reports whether nothing but empty lines came.
func (f *framing) empty() bool { return f.head == 0 && !f.hasRequestLine() && f.pos == f.line }
