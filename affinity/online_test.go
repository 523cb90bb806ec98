package affinity

import (
	"errors"
	"io/fs"
	"testing"
)

func TestOnline(t *testing.T) {
	s, err := Online("testdata/v2")
	if err != nil || s.String() != "0-3,6" {
		t.Errorf("got %q, %v, want 0-3,6", s, err)
	}
}

func TestOnlineErrors(t *testing.T) {
	if _, err := Online("testdata/v1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v, want fs.ErrNotExist", err)
	}
	var pe *ParseError
	if _, err := Online("testdata/bad-words"); !errors.As(err, &pe) || pe.Token != "0-3;7" {
		t.Errorf("malformed file: %v, want a ParseError", err)
	}
}
