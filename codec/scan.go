package codec

import (
	"bytes"
	"unicode/utf8"
)

// MaxDepth is how many arrays and objects may be open at once in a document.
const MaxDepth = 32

// Reasons that are given in more than one place.
const (
	reasonEnd        = "unexpected end"
	reasonOpenString = "unexpected end inside a string"
)

// scanner checks one document against RFC 8259 and the further rules of this
// package. Its methods leave pos behind what they have read.
type scanner struct {
	src   []byte
	pos   int
	keys  keySet
	arena arena
}

// scan returns the first fault of src, or nil.
func (s *scanner) scan(src []byte) *SyntaxError {
	s.src, s.pos = src, 0
	err := s.document()
	s.src = nil // hold on to nobody's body
	s.keys.reset()
	return err
}

func (s *scanner) document() *SyntaxError {
	// RFC 8259, section 8.1: a sender must not add one.
	if bytes.HasPrefix(s.src, []byte("\xef\xbb\xbf")) {
		return &SyntaxError{0, "byte order mark"}
	}
	s.space()
	if s.pos == len(s.src) {
		return &SyntaxError{s.pos, "empty document"}
	}
	if err := s.value(0); err != nil {
		return err
	}
	s.space()
	if s.pos < len(s.src) {
		return &SyntaxError{s.pos, "text after the end of the document"}
	}
	return nil
}

// value reads one value inside depth arrays and objects.
func (s *scanner) value(depth int) *SyntaxError {
	if s.pos == len(s.src) {
		return &SyntaxError{s.pos, reasonEnd}
	}
	switch c := s.src[s.pos]; {
	case c == '"':
		s.arena.values++
		_, _, err := s.text()
		return err
	case c == '-' || isDigit(c):
		s.arena.values++
		return s.number()
	case c == '{', c == '[':
		if depth == MaxDepth {
			return &SyntaxError{s.pos, "nested too deeply"}
		}
		if c == '{' {
			return s.object(depth + 1)
		}
		return s.array(depth + 1)
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	default:
		return s.unexpected("a value")
	}
}

// object reads an object, depth arrays and objects being open with it.
func (s *scanner) object(depth int) *SyntaxError {
	position := s.arena.open()
	s.pos++
	if s.closes('}') {
		return nil
	}
	keys := s.keys.enter()
	for n := 1; ; n++ {
		s.space()
		if err := s.key(&keys); err != nil {
			return err
		}
		s.space()
		if s.pos == len(s.src) || s.src[s.pos] != ':' {
			return s.unexpected("a colon")
		}
		s.pos++
		s.space()
		if err := s.value(depth); err != nil {
			return err
		}
		if s.closes('}') {
			s.keys.leave(keys)
			s.arena.close(position, n)
			return nil
		}
		if s.pos == len(s.src) || s.src[s.pos] != ',' {
			return s.unexpected("a comma or }")
		}
		s.pos++
	}
}

func (s *scanner) key(keys *scope) *SyntaxError {
	if s.pos == len(s.src) || s.src[s.pos] != '"' {
		return s.unexpected("a key")
	}
	start := s.pos
	key, escaped, err := s.text()
	if err != nil {
		return err
	}
	if escaped {
		key = s.keys.unescape(key)
	}
	if !s.keys.add(keys, key) {
		return &SyntaxError{start, "repeated key " + quote(key)}
	}
	return nil
}

// array reads an array, depth arrays and objects being open with it.
func (s *scanner) array(depth int) *SyntaxError {
	position := s.arena.open()
	s.pos++
	if s.closes(']') {
		return nil
	}
	for n := 1; ; n++ {
		s.space()
		if err := s.value(depth); err != nil {
			return err
		}
		if s.closes(']') {
			s.arena.close(position, n)
			return nil
		}
		if s.pos == len(s.src) || s.src[s.pos] != ',' {
			return s.unexpected("a comma or ]")
		}
		s.pos++
	}
}

// closes skips space and then bracket, if that comes next.
func (s *scanner) closes(bracket byte) bool {
	s.space()
	if s.pos < len(s.src) && s.src[s.pos] == bracket {
		s.pos++
		return true
	}
	return false
}

// text reads a string, whose opening quote is next. It returns what is between
// the quotes and whether an escape is among it.
func (s *scanner) text() (raw []byte, escaped bool, err *SyntaxError) {
	start := s.pos + 1
	i := start
	for {
		i = plainEnd(s.src, i)
		if i == len(s.src) {
			return nil, false, &SyntaxError{i, reasonOpenString}
		}
		switch c := s.src[i]; {
		case c == '"':
			s.pos = i + 1
			return s.src[start:i], escaped, nil
		case c == '\\' && i+1 == len(s.src):
			return nil, false, &SyntaxError{i + 1, reasonOpenString}
		case c == '\\':
			n, reason := escapeLen(s.src[i:])
			if reason != "" {
				return nil, false, &SyntaxError{i, reason}
			}
			escaped = true
			i += n
		case c < ' ':
			return nil, false, &SyntaxError{i, "control character (" + quoteByte(c) + ") inside a string"}
		default:
			// DecodeRune refuses overlong forms, surrogates and what is above
			// U+10FFFF. A real U+FFFD is three bytes long.
			r, n := utf8.DecodeRune(s.src[i:])
			if r == utf8.RuneError && n == 1 {
				return nil, false, &SyntaxError{i, "invalid UTF-8 (" + quoteByte(c) + ")"}
			}
			i += n
		}
	}
}

// number reads a number, whose first byte is next (RFC 8259, section 6).
func (s *scanner) number() *SyntaxError {
	if s.src[s.pos] == '-' {
		s.pos++
	}
	leadingZero := s.pos < len(s.src) && s.src[s.pos] == '0'
	start := s.pos
	switch n := s.digits(); {
	case n == 0:
		return s.unexpected("a digit")
	case leadingZero && n > 1:
		return &SyntaxError{start, "leading zero"}
	}
	if s.pos < len(s.src) && s.src[s.pos] == '.' {
		s.pos++
		if s.digits() == 0 {
			return s.unexpected("a digit")
		}
	}
	if s.pos < len(s.src) && s.src[s.pos]|0x20 == 'e' {
		s.pos++
		if s.pos < len(s.src) && (s.src[s.pos] == '+' || s.src[s.pos] == '-') {
			s.pos++
		}
		if s.digits() == 0 {
			return s.unexpected("a digit")
		}
	}
	return nil
}

// digits skips decimal digits and returns how many there were.
func (s *scanner) digits() int {
	i := s.pos
	for i < len(s.src) && isDigit(s.src[i]) {
		i++
	}
	n := i - s.pos
	s.pos = i
	return n
}

func (s *scanner) literal(word string) *SyntaxError {
	if !bytes.HasPrefix(s.src[s.pos:], []byte(word)) {
		return &SyntaxError{s.pos, "want " + word}
	}
	s.pos += len(word)
	return nil
}

// space skips the four bytes that JSON calls whitespace.
func (s *scanner) space() {
	for s.pos < len(s.src) {
		switch s.src[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// unexpected describes what is at pos instead of what was wanted.
func (s *scanner) unexpected(want string) *SyntaxError {
	if s.pos == len(s.src) {
		return &SyntaxError{s.pos, reasonEnd}
	}
	return &SyntaxError{s.pos, "want " + want + ", got " + quoteByte(s.src[s.pos])}
}

func isDigit(c byte) bool {
	return c >= '0' && c <= '9'
}
