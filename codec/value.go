package codec

import (
	"iter"

	"github.com/valyala/fastjson"
)

// Value is one value of a document. It is small and passed by value. It is valid
// until the next Decode or Reset of its [Decoder], and must not be read by two
// goroutines at once. The zero Value is null.
type Value struct {
	v *fastjson.Value
}

// Kind says what v is. It is never [Integer].
func (v Value) Kind() Kind {
	if v.v == nil {
		return Null
	}
	switch v.v.Type() {
	case fastjson.TypeTrue, fastjson.TypeFalse:
		return Bool
	case fastjson.TypeNumber:
		return Number
	case fastjson.TypeString:
		return String
	case fastjson.TypeArray:
		return Array
	case fastjson.TypeObject:
		return Object
	default:
		return Null
	}
}

// Expect returns a [*TypeError] unless v is of kind k.
func (v Value) Expect(k Kind) error {
	if k == Integer {
		_, err := v.Int64()
		return err
	}
	if got := v.Kind(); got != k {
		return &TypeError{Want: k, Got: got}
	}
	return nil
}

// Bool returns the value of true or false, or a [*TypeError].
func (v Value) Bool() (bool, error) {
	if err := v.Expect(Bool); err != nil {
		return false, err
	}
	return v.v.Type() == fastjson.TypeTrue, nil
}

// Int64 returns an integer that is written in plain digits, with or without a
// minus sign, and that fits 64 bits; -0 is 0. Anything else is a [*TypeError]:
// 1.0 and 1e3 too, because a reader that rounds would take an id for another.
func (v Value) Int64() (int64, error) {
	if got := v.Kind(); got != Number {
		return 0, &TypeError{Want: Integer, Got: got}
	}
	n, err := v.v.Int64()
	if err != nil {
		return 0, &TypeError{Want: Integer, Got: Number, Number: cut(v.v.MarshalTo(nil))}
	}
	return n, nil
}

// Text returns a copy of a string, which the caller owns, or a [*TypeError].
func (v Value) Text() (string, error) {
	b, err := v.Bytes()
	return string(b), err
}

// Bytes returns the bytes of a string, or a [*TypeError]. They are valid as long
// as v is and must not be written to.
func (v Value) Bytes() ([]byte, error) {
	if err := v.Expect(String); err != nil {
		return nil, err
	}
	return v.v.GetStringBytes(), nil
}

// Len returns the number of elements of an array or members of an object, and 0
// for any other kind.
func (v Value) Len() int {
	switch v.Kind() {
	case Array:
		return len(v.v.GetArray())
	case Object:
		return v.v.GetObject().Len()
	default:
		return 0
	}
}

// Elements ranges over the elements of an array, in order. Any other kind has
// none; see Expect.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind() != Array {
			return
		}
		for _, e := range v.v.GetArray() {
			if !yield(Value{e}) {
				return
			}
		}
	}
}

// Members ranges over the keys and values of an object, in the order they were
// written. Any other kind has none; see Expect. A key is valid as long as v is
// and must not be written to.
func (v Value) Members() iter.Seq2[[]byte, Value] {
	return func(yield func([]byte, Value) bool) {
		if v.Kind() != Object {
			return
		}
		more := true // Visit itself cannot be stopped
		v.v.GetObject().Visit(func(key []byte, m *fastjson.Value) {
			more = more && yield(key, Value{m})
		})
	}
}
