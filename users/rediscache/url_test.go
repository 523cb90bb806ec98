package rediscache

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	for text, want := range map[string]endpoint{
		"redis://localhost":               {network: "tcp", addr: "localhost:6379"},
		"redis://localhost:7000/":         {network: "tcp", addr: "localhost:7000"},
		"redis://[::1]:7000/15":           {network: "tcp", addr: "[::1]:7000", db: 15},
		"redis://:secret@host":            {network: "tcp", addr: "host:6379", password: "secret"},
		"redis://me:a%40b%2Fc%23@host/2":  {network: "tcp", addr: "host:6379", username: "me", password: "a@b/c#", db: 2},
		"rediss://me:secret@example.com":  {network: "tcp", addr: "example.com:6379", host: "example.com", username: "me", password: "secret"},
		"unix:///run/redis.sock":          {network: "unix", addr: "/run/redis.sock"},
		"unix://:secret@/run/redis?db=12": {network: "unix", addr: "/run/redis", password: "secret", db: 12},
	} {
		got, err := parseURL(text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
}

func TestParseURLRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "must begin with redis://",
		"localhost:6379":                "is no URL",
		"http://localhost":              "must begin with redis://",
		"redis:localhost":               "is no URL",
		"redis:///0":                    "no host",
		"redis://:6379":                 "no host",
		"redis://host:":                 "port is empty",
		"redis://host:0":                "port is not from",
		"redis://host:65536":            "port is not from",
		"redis://host/x":                "database",
		"redis://host/-1":               "database",
		"redis://host/0/1":              "database",
		"redis://host?db=1":             "must not have a query",
		"redis://host/0#":               "fragment",
		"redis://me:hunter2@ho st":      "is no URL",
		"redis://me:hun/ter2@host":      "is no URL",
		"redis://me:99#hunter2@host":    "fragment",
		"redis://me:99?hunter2@host":    "query",
		"redis://me:99999/hunter2@host": "port is not from",
		"unix://host/run/redis":         "want unix:///path",
		"unix:///":                      "want unix:///path",
		"unix:///run/redis?timeout=1s":  "query",
		"unix:///run/redis?db=1&db=2":   "query",
		"unix:///run/redis?db=hunter2":  "database",
	} {
		err := CheckURL(text)
		if !errors.Is(err, ErrURL) {
			t.Errorf("%s: got %v", text, err)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want ... %s ...", text, err, want)
		}
		if strings.Contains(err.Error(), "hun") {
			t.Errorf("%s: the error holds the password: %v", text, err)
		}
		if _, err := Open(context.Background(), Options{URL: text}); !errors.Is(err, ErrURL) {
			t.Errorf("Open(%s): got %v", text, err)
		}
	}
}
