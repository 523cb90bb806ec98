package machine

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestArchive compares with an archive made by hand from the description of the format.
func TestArchive(t *testing.T) {
	var got strings.Builder
	a := NewArchive(&got)
	a.Dir("bin")
	a.File("bin/x", 0o755, []byte("hello"))
	a.Device("null", 1, 3)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		//     inode    mode     user     group    links    time     size     on major, minor   is major, minor   name     sum
		"070701" + "00000000" + "000041ed" + "00000000" + "00000000" + "00000001" + "00000000" + "00000000" + "00000000" + "00000000" + "00000000" + "00000000" + "00000004" + "00000000",
		"bin\x00", "\x00\x00", // 110 + 4 bytes and 2 are 116
		"070701" + "00000001" + "000081ed" + "00000000" + "00000000" + "00000001" + "00000000" + "00000005" + "00000000" + "00000000" + "00000000" + "00000000" + "00000006" + "00000000",
		"bin/x\x00", "hello", "\x00\x00\x00",
		"070701" + "00000002" + "00002180" + "00000000" + "00000000" + "00000001" + "00000000" + "00000000" + "00000000" + "00000000" + "00000001" + "00000003" + "00000005" + "00000000",
		"null\x00", "\x00",
		"070701" + "00000003" + "00000000" + "00000000" + "00000000" + "00000001" + "00000000" + "00000000" + "00000000" + "00000000" + "00000000" + "00000000" + "0000000b" + "00000000",
		"TRAILER!!!\x00", "\x00\x00\x00",
	}, "")
	if got.String() != want {
		t.Errorf("got\n%q\nwant\n%q", got.String(), want)
	}
}

// full takes a few bytes and fails from then on.
type full struct{ room int }

var errFull = errors.New("full")

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.room {
		return 0, errFull
	}
	f.room -= len(p)
	return len(p), nil
}

func TestArchiveTellsOfAFailedWrite(t *testing.T) {
	for _, room := range []int{0, 120, 300} {
		a := NewArchive(&full{room})
		a.File("x", 0o600, bytes.Repeat([]byte("x"), 150))
		if err := a.Close(); !errors.Is(err, errFull) {
			t.Errorf("with room for %d bytes: %v", room, err)
		}
	}
	if err := NewArchive(io.Discard).Close(); err != nil {
		t.Error(err)
	}
}
