package engine

import (
	"strings"
	"testing"
)

func TestByteClasses(t *testing.T) {
	const alnum = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	var visible string
	for c := byte('!'); c <= '~'; c++ {
		visible += string(c)
	}
	for c := range 256 {
		for _, class := range []struct {
			name    string
			is      func(byte) bool
			members string
		}{
			{"token", isToken, alnum + "!#$%&'*+-.^_`|~"},
			{"host", isHostByte, alnum + "-._~!$&'()*+,;="},
			{"target", isTargetByte, strings.ReplaceAll(visible, "#", "")},
			{"hex", isHex, "0123456789abcdefABCDEF"},
			{"alpha", isAlpha, alnum[10:]},
			{"digit", isDigit, alnum[:10]},
		} {
			if got, want := class.is(byte(c)), strings.IndexByte(class.members, byte(c)) >= 0; got != want {
				t.Errorf("%s(%q) = %v", class.name, byte(c), got)
			}
		}
	}
}

func TestValidValue(t *testing.T) {
	for c := range 256 {
		want := c >= ' ' && c != 0x7f || c == '\t'
		for at := range 20 { // every lane of the eight-byte steps, and the rest
			v := []byte("abcdefghijklmnopqrst\xff")
			v[at] = byte(c)
			if got := validValue(v); got != want {
				t.Fatalf("%q at %d: %v", byte(c), at, got)
			}
			v[(at+3)%20] = '\t' // a tab must not hide what follows
			if got := validValue(v); got != want {
				t.Fatalf("%q at %d with a tab: %v", byte(c), at, got)
			}
		}
	}
}

func TestHosts(t *testing.T) {
	for _, h := range []string{"a", "a.example", "127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:80", "[::ffff:1.2.3.4]", "xn--a", "a:", "a_b", "[2001:db8::1]:8080"} {
		if !validHost([]byte(h)) {
			t.Errorf("%q refused", h)
		}
	}
	for _, h := range []string{"", ":80", "a:b", "a:80:80", "a:123456", "u@a", "a/b", "a b", "a\t", "[]", "[::1", "[::1]x", "[g]", "[1.2.3.4]", "[::1%25eth0]", "%41", "a%zz", "a?b", "a#b", "\xe9", "a,\"b"} {
		if validHost([]byte(h)) {
			t.Errorf("%q accepted", h)
		}
	}
}
