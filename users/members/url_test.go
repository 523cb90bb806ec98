package members

import (
	"errors"
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://example.com":            "example.com:80",
		"https://example.com":           "example.com:443",
		"http://example.com:8090/":      "example.com:8090",
		"http://[::1]:8090/api/v1":      "[::1]:8090",
		"https://[fe80::1]":             "[fe80::1]:443",
		"http://127.0.0.1:65535/a%20b/": "127.0.0.1:65535",
	} {
		u, err := ParseURL(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := address(u); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestParseURLRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "must begin with http",
		"example.com:8090":            "must begin with http",
		"ftp://example.com":           "must begin with http",
		"HTTPS:example.com":           "no host",
		"http:///members":             "no host",
		"http://:8090":                "no host",
		"http://example.com:":         "port",
		"http://example.com:0":        "port",
		"http://example.com:65536":    "port",
		"http://example.com:x":        "no URL",
		"http://example.com?ids=1":    "query",
		"http://example.com?":         "query",
		"http://example.com/#top":     "fragment",
		"http://example.com/#":        "fragment",
		"http://me:hunter2@host":      "user or a password",
		"http://me:hun/ter2@host":     "no URL",
		"http://me:hunter2@ho st":     "no URL",
		"http://me:123#hunter2@host":  "fragment",
		"http://me:99999#hunter@host": "fragment",
		"http://me:123?hunter2@host":  "query",
		"http://host/\x00":            "no URL",
		"http://[::1":                 "no URL",
		"redis://me:hunter2@host:1/0": "must begin with http",
	} {
		_, err := ParseURL(text)
		if !errors.Is(err, ErrURL) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want ... %s ...", text, err, want)
			continue
		}
		if strings.Contains(err.Error(), "hun") {
			t.Errorf("%q: the error holds the password: %v", text, err)
		}
		if _, err := New(Options{BaseURL: text}); !errors.Is(err, ErrURL) {
			t.Errorf("New(%q): got %v", text, err)
		}
	}
}
