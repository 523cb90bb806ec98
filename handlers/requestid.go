package handlers

import (
	"encoding/hex"
	"math/rand/v2"

	"github.com/valyala/fasthttp"
)

// maxRequestID is the longest caller's id that is taken over, in bytes.
const maxRequestID = 128

// requestID returns the caller's X-Request-Id if it is sane, else makes one
// and stores it in the request, so that answer, log and access log agree. The
// bytes are valid until the request is reset.
func requestID(ctx *fasthttp.RequestCtx) []byte {
	h := &ctx.Request.Header
	if id := h.Peek(headerRequestID); saneRequestID(id) {
		return id
	}
	var raw [16]byte
	// Ids must differ, not be secret: the runtime's generator is enough.
	for i, v := range [2]uint64{rand.Uint64(), rand.Uint64()} {
		for j := range 8 {
			raw[i*8+j] = byte(v >> (8 * j))
		}
	}
	var text [32]byte
	hex.Encode(text[:], raw[:])
	h.SetBytesV(headerRequestID, text[:])
	return h.Peek(headerRequestID)
}

// saneRequestID accepts what survives a header, a log line and a shell.
func saneRequestID(id []byte) bool {
	if len(id) == 0 || len(id) > maxRequestID {
		return false
	}
	for _, c := range id {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '-', c == '_', c == '.', c == ':', c == '/', c == '+', c == '=':
		default:
			return false
		}
	}
	return true
}
