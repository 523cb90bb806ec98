package handlers

import (
	"strconv"

	"github.com/valyala/fasthttp"
)

// headerIdempotencyKey makes a POST safe to retry
// (draft-ietf-httpapi-idempotency-key-header).
const headerIdempotencyKey = "Idempotency-Key"

// maxIdempotencyKey is the longest key that is taken, in bytes.
const maxIdempotencyKey = 255

// idempotencyKey returns what a retry of this request by the same writer has in
// common with it and nothing else has; "" if the caller sent no key. The draft
// wants a string in quotes; the text is taken as it is, with or without them.
func idempotencyKey(ctx *fasthttp.RequestCtx, writer string) (string, error) {
	keys := ctx.Request.Header.PeekAll(headerIdempotencyKey)
	if len(keys) == 0 {
		return "", nil
	}
	key := keys[0]
	if len(keys) > 1 || len(key) == 0 || len(key) > maxIdempotencyKey || !printable(key) {
		return "", badRequest(headerIdempotencyKey + " must be 1 to " + strconv.Itoa(maxIdempotencyKey) +
			" printable ASCII characters, once")
	}
	// A name in a file of tokens is a part of a line, and a key has no line breaks.
	return writer + "\n" + string(key), nil
}

func printable(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}
