package codec

import "strconv"

// Kind is what a JSON value is.
type Kind uint8

// The kinds of JSON values. Integer is only ever wanted, in a [TypeError]:
// JSON itself knows no more than Number, and [Value.Kind] says so.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
	Integer
)

// String returns the kind's name in lower case.
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "boolean"
	case Number:
		return "number"
	case String:
		return "string"
	case Array:
		return "array"
	case Object:
		return "object"
	case Integer:
		return "integer"
	default:
		return "kind " + strconv.Itoa(int(k))
	}
}

// phrase returns the kind as a sentence names it.
func (k Kind) phrase() string {
	switch k {
	case Null:
		return "null"
	case Array, Object:
		return "an " + k.String()
	case Integer:
		return "a 64-bit integer in plain digits"
	default:
		return "a " + k.String()
	}
}
