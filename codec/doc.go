// Package codec writes JSON by appending to byte slices and reads JSON
// strictly.
//
// # Writing
//
// The Append functions take a destination and return it longer, as the
// built-in append does. They allocate only when the destination is too short,
// and what they write is valid JSON in valid UTF-8 whatever bytes they are
// given. Punctuation between values is the caller's.
//
// # Reading
//
// A [Decoder] accepts exactly the documents RFC 8259 allows, and of those only
// the ones that mean the same to every reader: a repeated key, a lone
// surrogate, invalid UTF-8 and a document nested deeper than [MaxDepth] are
// refused with a [SyntaxError] that names the byte. A scanner of our own
// decides that; fastjson, which forgives most of it, only ever sees documents
// that have passed.
//
// The life of a [Value]:
//
//  1. Decode reads a copy of the body, so the body may be reused at once.
//  2. The values of the document, and the byte views taken from them, live in
//     the Decoder until its next Decode or Reset.
//  3. What must live longer is copied: [Value.Text] does so.
//
// # Caveats
//
// A Decoder is for one goroutine at a time, and so are its values: reading a
// string unescapes it in place. The package puts no limit on the length of a
// body; whoever reads it from the network does.
package codec
