package engine

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/valyala/fasthttp"
)

// FuzzFraming checks three things for any bytes: the verdict does not depend on
// how they are cut; fasthttp's parser accepts each head the framing accepts and
// finds the same body; and the memory kept is bounded by what came.
func FuzzFraming(f *testing.F) {
	for _, s := range validStreams()[:60] {
		f.Add([]byte(s), uint16(7), uint16(33))
	}
	f.Add([]byte("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a\r\nhello\r\n0\r\nX: 1\r\n\r\nGET"), uint16(60), uint16(61))
	lim := limits{head: 1024, body: 2048}
	f.Fuzz(func(t *testing.T, stream []byte, cut1, cut2 uint16) {
		type outcome struct {
			v    verdict
			err  *Error
			end  int
			body string

			trailers bool
		}
		run := func(pieces ...[]byte) outcome {
			var fr framing
			var b []byte
			var o outcome
			packed := 0
			for _, p := range pieces {
				b = append(b, p...)
				if o.v = fr.advance(b, &lim); o.v == askContinue {
					o.v = fr.advance(b, &lim)
				}
				if o.v != needMore {
					break
				}
				before := len(b)
				b = fr.pack(b)
				packed += before - len(b)
			}
			o.err = fr.err
			if o.v == complete {
				o.end, o.body = fr.end()+packed, string(fr.bodyBytes(b))
				o.trailers = fr.chunked && len(fr.trailers(b)) > len("\r\n")
			}
			return o
		}
		whole := run(stream)
		n := len(stream)
		i, j := int(cut1)%(n+1), int(cut2)%(n+1)
		i, j = min(i, j), max(i, j)
		if got := run(stream[:i], stream[i:j], stream[j:]); got != whole {
			t.Fatalf("cut at %d and %d: %+v, whole %+v", i, j, got, whole)
		}
		if whole.v != complete {
			return
		}
		var req fasthttp.Request
		r := bufio.NewReaderSize(bytes.NewReader(stream[:whole.end]), 8192)
		if err := req.ReadLimitBody(r, int(lim.body)); err != nil {
			if !whole.trailers { // whose names it checks too
				t.Fatalf("fasthttp refuses what the framing accepts: %v: %q", err, stream[:whole.end])
			}
			return
		}
		var u fasthttp.URI
		if err := u.Parse(req.Header.Host(), req.Header.RequestURI()); err != nil {
			t.Fatalf("fasthttp cannot parse the target: %v", err)
		}
		if req.MayContinue() {
			if err := req.ContinueReadBody(r, int(lim.body), false); err != nil {
				t.Fatalf("body: %v", err)
			}
		}
		if len(req.Header.MultipartFormBoundary()) > 0 {
			return
		}
		if got := string(req.Body()); got != whole.body {
			t.Fatalf("body %q, fasthttp %q", whole.body, got)
		}
		if rest := r.Buffered(); rest != 0 {
			t.Fatalf("fasthttp leaves %d bytes of %q", rest, stream[:whole.end])
		}
	})
}

// FuzzServe runs whole streams: no bytes may break the loop, and the answers do
// not depend on the cut.
func FuzzServe(f *testing.F) {
	for _, s := range validStreams()[:60] {
		f.Add([]byte(s), uint16(9))
	}
	f.Fuzz(func(t *testing.T, stream []byte, cut uint16) {
		if bytes.Contains(bytes.ToLower(stream), []byte("upgrade")) || bytes.Contains(stream, []byte("CONNECT")) {
			return // promoted: that needs a socket
		}
		i := int(cut) % (len(stream) + 1)
		whole := serveStream(t, engineOf(), stream)
		if got := serveStream(t, engineOf(), stream[:i], stream[i:]); got != whole {
			t.Fatalf("cut at %d: %q, whole %q", i, clip(got), clip(whole))
		}
	})
}
