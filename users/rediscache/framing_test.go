package rediscache

import (
	"errors"
	"strings"
	"testing"
)

func TestFraming(t *testing.T) {
	for stream, want := range map[string]int{
		"":                                     0,
		"+OK\r\n":                              1,
		"-ERR no\r\n:-12\r\n":                  2,
		"$5\r\nhello\r\n$-1\r\n":               2,
		"$0\r\n\r\n":                           1,
		"$4\r\n\r\n\r\n\r\n":                   1,
		"*0\r\n*-1\r\n%0\r\n":                  3,
		"*2\r\n$1\r\na\r\n*1\r\n:1\r\n_\r\n":   2,
		"%1\r\n+k\r\n~2\r\n#t\r\n,1.5\r\n":     1,
		"=5\r\ntxt:x\r\n!3\r\nERR\r\n(123\r\n": 3,
		">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nkey\r\n":             0,
		">2\r\n$10\r\ninvalidate\r\n_\r\n+PONG\r\n":                  1,
		">2\r\n$10\r\ninvalidate\r\n*-1\r\n+PONG\r\n":                1,
		">2\r\n$10\r\ninvalidate\r\n*0\r\n+PONG\r\n":                 1,
		"+PONG\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$0\r\n\r\n*0\r\n": 2,
		"*2\r\n$1\r\na\r\n$1\r":                                      0,
	} {
		// However the stream is cut, it says the same.
		for size := 1; size <= len(stream)+1; size++ {
			f := framing{pushes: true}
			got := 0
			for rest := stream; rest != ""; {
				n := min(size, len(rest))
				complete, err := f.feed([]byte(rest[:n]))
				if err != nil {
					t.Fatalf("%q by %d: %v", stream, size, err)
				}
				got += complete
				rest = rest[n:]
			}
			if got != want {
				t.Errorf("%q by %d: %d values, want %d", stream, size, got, want)
			}
		}
	}
}

func wrongStreams() []string {
	return []string{
		"HTTP/1.1 400 Bad Request\r\n",
		"\x00", "\xff\xff", "\r\n", "\n", "+OK\n", "OK",
		"$-2\r\n", "$\r\n", "$+1\r\n", "$1x\r\n", "$99999999999999999999\r\n", "$67108865\r\n", "$?\r\n",
		"$1\r\nab\r\n", "$1\r\na\n\r", "$2\r\na\r\n\r\n",
		"*-2\r\n", "*1048577\r\n", "*?\r\n", "%-1\r\n", "~-1\r\n", "%600000\r\n", "!-1\r\n",
		":x\r\n", ":\r\n", ":-\r\n", ":1.0\r\n", ":99999999999999999999\r\n",
		"#\r\n", "#x\r\n", "#tt\r\n", "_x\r\n",
		"|1\r\n", ";4\r\n", ".\r\n",
		strings.Repeat("*1\r\n", maxDepth+1),
		"+" + strings.Repeat("x", maxLine),
		"*2\r\n" + strings.Repeat("*1000000\r\n", 2),
		">3\r\n$9\r\nsubscribe\r\n", ">2\r\n$9\r\nsubscribe\r\n", ">2\r\n$10\r\ninvalidatE\r\n",
		">2\r\n+invalidate\r\n", ">2\r\n$10\r\ninvalidate\r\n$1\r\n", ">0\r\n", ">-1\r\n", "*1\r\n>2\r\n",
	}
}

func TestFramingRefuses(t *testing.T) {
	for _, stream := range wrongStreams() {
		f := framing{pushes: true}
		if _, err := f.feed([]byte(stream)); !errors.Is(err, ErrProtocol) {
			t.Errorf("%.40q: got %v", stream, err)
		} else if len(err.Error()) > 200 {
			t.Errorf("%.40q: the error has %d bytes", stream, len(err.Error()))
		}
	}
	if _, err := new(framing).feed([]byte(">2\r\n")); !errors.Is(err, ErrProtocol) {
		t.Errorf("a push where none may come: got %v", err)
	}
}

// FuzzFraming cuts streams in two: what is said of them must not change.
func FuzzFraming(f *testing.F) {
	for _, s := range wrongStreams() {
		f.Add([]byte(s), 1)
	}
	f.Add([]byte("*2\r\n$1\r\na\r\n*1\r\n:1\r\n_\r\n"), 7)
	f.Add([]byte(">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nkey\r\n+PONG\r\n"), 12)
	f.Fuzz(func(t *testing.T, stream []byte, at int) {
		at = max(0, min(at, len(stream)))
		whole, cut := framing{pushes: true}, framing{pushes: true}
		want, wantErr := whole.feed(stream)
		got, err := cut.feed(stream[:at])
		if err == nil {
			var rest int
			rest, err = cut.feed(stream[at:])
			got += rest
		}
		if got != want || (err == nil) != (wantErr == nil) {
			t.Fatalf("cut at %d: %d values, %v; whole: %d, %v", at, got, err, want, wantErr)
		}
	})
}

func BenchmarkFraming(b *testing.B) {
	var s strings.Builder
	s.WriteString("*20\r\n")
	for range 20 {
		s.WriteString("$400\r\n" + strings.Repeat("x", 400) + "\r\n")
	}
	stream := []byte(s.String())
	var f framing
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.feed(stream); err != nil {
			b.Fatal(err)
		}
	}
}
