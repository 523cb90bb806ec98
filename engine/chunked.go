package engine

import "bytes"

// chunkStage is where the decoder stands in a chunked body.
type chunkStage uint8

const (
	chunkSize chunkStage = iota
	chunkData
	chunkEnd // the CRLF after the data
	chunkTrailers
)

const (
	maxChunkLine   = 256      // bytes of a size line with its extensions
	maxChunkExtras = 16 << 10 // bytes of all extensions of one body
)

// chunks decodes the chunked coding of RFC 9112 section 7.1. The decoded body
// is packed behind the head, over the framing it came in.
type chunks struct {
	left   int64 // bytes of the current chunk still to come
	extras int   // bytes of extensions so far
	keep   int   // start of the trailers
	stage  chunkStage
}

// scanChunks decodes what arrived after f.pos.
func (f *framing) scanChunks(b []byte, lim *limits) verdict {
	d := &f.chunks
	for {
		switch d.stage {
		case chunkSize:
			line, v := f.chunkLine(b, maxChunkLine, errChunk)
			if v != complete {
				return v
			}
			size, ok := d.sizeLine(line)
			if !ok {
				return f.fail(errChunk)
			}
			if size > lim.body-f.body {
				return f.fail(errBodySize)
			}
			d.left, d.stage = size, chunkData
			if size == 0 {
				d.stage, d.keep = chunkTrailers, f.pos
			}
		case chunkData:
			n := min(d.left, int64(len(b)-f.pos))
			copy(b[f.head+int(f.body):], b[f.pos:f.pos+int(n)])
			f.body += n
			f.pos += int(n)
			d.left -= n
			if d.left > 0 {
				return needMore
			}
			d.stage = chunkEnd
		case chunkEnd:
			tail := b[f.pos:]
			if len(tail) > 0 && tail[0] != '\r' || len(tail) > 1 && tail[1] != '\n' {
				return f.fail(errChunk)
			}
			if len(tail) < 2 {
				return needMore
			}
			f.pos += 2
			f.line, d.stage = f.pos, chunkSize
		case chunkTrailers:
			line, v := f.chunkLine(b, lim.head-(f.line-d.keep), errTrailers)
			if v != complete {
				return v
			}
			if len(line) == 0 {
				return complete
			}
			if !validTrailer(line) {
				return f.fail(errFieldName)
			}
		}
	}
}

// chunkLine returns the line that begins at f.line without its CRLF and steps
// over it. A line of more than limit bytes fails with tooLong.
func (f *framing) chunkLine(b []byte, limit int, tooLong *Error) ([]byte, verdict) {
	window := b[f.line:]
	if len(window) > limit {
		window = window[:max(limit, 0)]
	}
	seen := min(f.pos-f.line, len(window))
	i := bytes.IndexByte(window[seen:], '\n')
	if i < 0 {
		if len(window) >= limit {
			return nil, f.fail(tooLong)
		}
		f.pos = f.line + len(window)
		return nil, needMore
	}
	i += seen
	if i == 0 || window[i-1] != '\r' {
		return nil, f.fail(errLineEnd)
	}
	f.line += i + 1
	f.pos = f.line
	return window[:i-1], complete
}

// sizeLine reads "hex [ ; extension ]". White space around the size is refused:
// parsers that disagree about it can be made to disagree about the message.
func (d *chunks) sizeLine(line []byte) (int64, bool) {
	const digits = 12 // far above any limit, far below overflow
	var size int64
	n := 0
	for n < len(line) && isHex(line[n]) {
		c := line[n]
		v := int64(c - '0')
		if c > '9' {
			v = int64(c|0x20-'a') + 10
		}
		size = size<<4 | v
		n++
		if n > digits {
			return 0, false
		}
	}
	ext := line[n:]
	if n == 0 || len(ext) > 0 && ext[0] != ';' {
		return 0, false
	}
	for _, c := range ext {
		if c < ' ' && c != '\t' || c >= 0x7f {
			return 0, false
		}
	}
	d.extras += len(ext)
	return size, d.extras <= maxChunkExtras
}

// validTrailer checks the shape of a trailer field; which names may not stand
// there is left to fasthttp.
func validTrailer(line []byte) bool {
	colon := 0
	for colon < len(line) && isToken(line[colon]) {
		colon++
	}
	return colon > 0 && colon < len(line) && line[colon] == ':' && validValue(line[colon+1:])
}

// trailers returns the trailer section of the complete request in b, with its
// empty line.
func (f *framing) trailers(b []byte) []byte { return b[f.chunks.keep:f.pos] }

// pack moves what is not decoded yet down to the decoded body and returns the
// shorter buffer, so that memory follows the body and not its framing.
func (f *framing) pack(b []byte) []byte {
	if !f.chunked || f.head == 0 {
		return b
	}
	packed := f.head + int(f.body)
	from := f.pos
	switch f.chunks.stage {
	case chunkSize:
		from = max(f.line, f.head)
	case chunkTrailers:
		from = f.chunks.keep
	case chunkData, chunkEnd:
	}
	gap := from - packed
	if gap <= 0 {
		return b
	}
	n := copy(b[packed:], b[from:])
	f.pos -= gap
	f.line -= gap
	f.chunks.keep -= gap
	return b[:packed+n]
}
