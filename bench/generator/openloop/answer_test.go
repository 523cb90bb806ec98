package openloop

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// heads are answers and what is to become of them.
func heads() []struct {
	text     string
	bodiless bool
	want     answer
	err      error
} {
	const ok = "HTTP/1.1 200 OK\r\n"
	pad := func(total int) string {
		const rest = ok + "Content-Length: 0\r\nA: \r\n\r\n"
		return ok + "Content-Length: 0\r\nA: " + strings.Repeat("a", total-len(rest)) + "\r\n\r\n"
	}
	type c = struct {
		text     string
		bodiless bool
		want     answer
		err      error
	}
	return []c{
		{text: ok + "Content-Length: 5\r\n\r\nhello", want: answer{200, 5, false}},
		{text: ok + "content-LENGTH:\t 5 \r\nX:\r\n\r\nhello", want: answer{200, 5, false}},
		{text: ok + "Content-Length: 0\r\n\r\n", want: answer{200, 0, false}},
		{text: "HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", want: answer{404, 0, false}},
		{text: ok + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi", want: answer{200, 2, false}},
		{text: ok + "Content-Length: 4\r\n\r\n\r\n\r\n", want: answer{200, 4, false}},
		{text: ok + "Connection: close\r\nContent-Length: 1\r\n\r\n!", want: answer{200, 1, true}},
		{text: ok + "Connection: x , CLOSE\r\nContent-Length: 1\r\n\r\n!", want: answer{200, 1, true}},
		{text: "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n!", want: answer{200, 1, true}},
		{text: "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\n!", want: answer{200, 1, false}},
		{text: "HTTP/1.1 204 No Content\r\n\r\n", want: answer{204, 0, false}},
		{text: "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", want: answer{304, 0, false}},
		{text: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\n" + ok + "Content-Length: 1\r\n\r\n!", want: answer{200, 1, false}},
		{text: ok + "Content-Length: 9\r\n\r\n", bodiless: true, want: answer{200, 0, false}},
		{text: ok + "\r\n", bodiless: true, want: answer{200, 0, false}},
		{text: pad(maxHead), want: answer{200, 0, false}},

		{text: pad(maxHead + 1), err: ErrHead},
		{text: ok + "A: " + strings.Repeat("a", 2*maxHead), err: ErrHead},
		{text: ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", err: ErrChunked},
		{text: ok + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", err: ErrChunked},
		{text: ok + "\r\nto the end", err: ErrLength},
		{text: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", err: ErrSwitched},
		{text: ok + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!", err: ErrMalformed},
		{text: ok + "Content-Length: +2\r\n\r\nhi", err: ErrMalformed},
		{text: ok + "Content-Length: 2, 2\r\n\r\nhi", err: ErrMalformed},
		{text: ok + "Content-Length:\r\n\r\n", err: ErrMalformed},
		{text: ok + "Content-Length: 9223372036854775808\r\n\r\n", err: ErrMalformed},
		{text: ok + "Content-Length : 2\r\n\r\nhi", err: ErrMalformed},
		{text: ok + "A: b\r\n c\r\nContent-Length: 0\r\n\r\n", err: ErrMalformed},
		{text: ok + "A: b\nContent-Length: 0\r\n\r\n", err: ErrMalformed},
		{text: ok + "A: b\x00\r\nContent-Length: 0\r\n\r\n", err: ErrMalformed},
		{text: ok + "no colon\r\n\r\n", err: ErrMalformed},
		{text: "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", err: ErrMalformed},
		{text: "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", err: ErrMalformed},
		{text: "HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n", err: ErrMalformed},
		{text: "HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n", err: ErrMalformed},
		{text: "HTTP/1.1\r\n\r\n", err: ErrMalformed},
		{text: "\r\n" + ok + "Content-Length: 0\r\n\r\n", err: ErrMalformed},
		{text: "SSH-2.0-x\r\n", err: ErrMalformed},
		{text: "\x15\x03", err: ErrMalformed},
	}
}

// feedAll feeds b in pieces that end at the cuts.
func feedAll(r *reader, b []byte, cuts ...int) (used int, done bool, err error) {
	for _, to := range append(cuts, len(b)) {
		if used > to {
			continue
		}
		n, d, err := r.feed(b[used:to])
		used += n
		if d || err != nil {
			return used, d, err
		}
		if used != to {
			return used, false, errors.New("bytes left over in the middle of an answer")
		}
	}
	return used, false, nil
}

func TestAnswers(t *testing.T) {
	for _, c := range heads() {
		text := []byte(c.text)
		check := func(cuts ...int) {
			t.Helper()
			r := reader{bodiless: c.bodiless}
			used, done, err := feedAll(&r, text, cuts...)
			if !errors.Is(err, c.err) || err == nil && (!done || used != len(text) || r.got != c.want) {
				t.Errorf("%.60q cut at %v: got %+v, done %v, %d bytes, %v; want %+v, %v", text, cuts, r.got, done, used, err, c.want, c.err)
			}
		}
		check()
		if len(text) > 1000 { // each byte of these is like the next
			for i := 1; i < len(text); i += 997 {
				check(i)
			}
			check(maxHead - 1)
			check(maxHead)
			continue
		}
		for i := 1; i < len(text); i++ {
			check(i)
			check(i/2, i)
		}
		each := make([]int, len(text))
		for i := range each {
			each[i] = i
		}
		check(each...)
	}
}

// An answer ends where it says, and the next begins there.
func TestAnswersInARow(t *testing.T) {
	const one = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
	text := []byte(strings.Repeat(one, 3))
	var r reader
	for i := range 3 {
		used, done, err := r.feed(text[i*len(one):])
		if used != len(one) || !done || err != nil {
			t.Fatalf("answer %d: %d bytes, done %v, %v", i, used, done, err)
		}
	}
	if _, done, err := r.feed([]byte(one[:20])); done || err != nil {
		t.Fatal(done, err)
	}
	r.reset()
	if _, done, err := r.feed([]byte(one)); !done || err != nil {
		t.Errorf("after a reset: done %v, %v", done, err)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, c := range heads() {
		if len(c.text) < 1000 {
			f.Add([]byte(c.text), c.bodiless, len(c.text)/2)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, bodiless bool, cut int) {
		r := reader{bodiless: bodiless}
		used, done, err := r.feed(text)
		if used < 0 || used > len(text) || done && err != nil || !done && err == nil && used != len(text) {
			t.Fatalf("used %d of %d, done %v, %v", used, len(text), done, err)
		}
		split := reader{bodiless: bodiless}
		used2, done2, err2 := feedAll(&split, text, min(max(0, cut), len(text)))
		if done2 != done || (err2 == nil) != (err == nil) || done && (used2 != used || r.got != split.got) {
			t.Fatalf("whole %+v %d %v %v, cut at %d %+v %d %v %v", r.got, used, done, err, cut, split.got, used2, done2, err2)
		}
		if !done {
			return
		}
		method := "GET"
		if bodiless {
			method = "HEAD"
		}
		in := bytes.NewReader(text)
		br := bufio.NewReaderSize(in, 64<<10)
		var resp *http.Response
		for {
			if resp, err = http.ReadResponse(br, &http.Request{Method: method}); err != nil {
				t.Fatalf("taken by us, but not by net/http: %v", err)
			}
			if resp.StatusCode >= 200 {
				break
			}
		}
		n, err := io.Copy(io.Discard, resp.Body)
		end := len(text) - in.Len() - br.Buffered()
		if err != nil || resp.StatusCode != r.got.status || n != r.got.length || resp.Close != r.got.close || end != used {
			t.Fatalf("got %+v and %d bytes, net/http %d, %d, close %v, %d bytes, %v", r.got, used, resp.StatusCode, n, resp.Close, end, err)
		}
	})
}
