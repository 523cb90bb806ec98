package codec

import (
	"fmt"

	"github.com/valyala/fastjson"
)

// maxHeld is what a Decoder keeps of its memory from one document to the next,
// in bytes; about ten times what a lookup of 1,000 ids needs.
const maxHeld = 1 << 20

// Decoder reads one JSON document at a time. The zero value is ready for use. A
// Decoder is not for concurrent use and must not be copied once used. It keeps
// its memory, so that reading a document like the ones before allocates nothing.
type Decoder struct {
	_       noCopy
	scanner scanner
	parser  fastjson.Parser
	held    int // bytes the parser holds, about
}

// Decode reads the document in body and returns its topmost value. Values of
// the document before, and views of their bytes, are void from here on. Body is
// not kept, and may be changed as soon as Decode has returned.
//
// A document that is refused gives a [*SyntaxError].
func (d *Decoder) Decode(body []byte) (Value, error) {
	d.Reset()
	d.scanner.arena.begin()
	refused := d.scanner.scan(body)
	d.held = d.scanner.arena.end() + len(body)
	if refused != nil {
		return Value{}, refused
	}
	v, err := d.parser.ParseBytes(body)
	if err != nil {
		return Value{}, fmt.Errorf("codec: fastjson refuses what the scanner took: %w", err)
	}
	return Value{v}, nil
}

// Reset voids the values of the last document, and gives back the memory of an
// unusually large one. Decode does the same by itself: Reset is for a Decoder
// that goes to rest in a pool.
func (d *Decoder) Reset() {
	if d.held > maxHeld {
		d.parser = fastjson.Parser{}
		d.scanner.arena = arena{}
		d.held = 0
	}
}

// noCopy lets go vet report copies.
type noCopy struct{}

// Lock does nothing; vet looks for it.
func (*noCopy) Lock() {}

// Unlock does nothing; vet looks for it.
func (*noCopy) Unlock() {}
