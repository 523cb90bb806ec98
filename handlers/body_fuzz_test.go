package handlers

import (
	"testing"

	"pinion/codec"
)

// FuzzBody feeds the readers of bodies and the checks behind them: whatever a
// client sends is taken or refused with a status of 400.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		`{"name":"Ana","email":"a@example.com"}`,
		`{"name":"Ana","email":"a@example.com","status":0,"city_id":9223372036854775807,"attributes":{"a":"b"}}`,
		`{"last_login_at":"2026-01-02T15:04:05.999999999+14:00","address":"\ud83d\ude00"}`,
		`{"last_login_at":"0000-01-01T00:00:00Z"}`,
		`{"last_login_at":"2026-01-02t03:04:05z"}`,
		`{"ids":[1,2,9223372036854775807]}`,
		`{"ids":[0]}`,
		`{"ids":[[]]}`,
		`{"status":99999999999999999999}`,
		`{"attributes":{"":""}}`,
		`{"` + "\x7f" + `":1}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var d codec.Decoder
		root, err := d.Decode(body)
		if err != nil || root.Kind() != codec.Object {
			return
		}
		u, err := newUser(root)
		if err == nil {
			err = u.Validate()
		}
		if err != nil {
			refused(t, err)
		}
		p, err := patch(root)
		if err == nil {
			err = p.Validate()
		}
		if err != nil {
			refused(t, err)
		}
		ids, err := lookupIDs(nil, root)
		if err != nil {
			refused(t, err)
			return
		}
		for _, id := range ids {
			if id <= 0 {
				t.Errorf("taken as an id: %d", id)
			}
		}
	})
}

func refused(t *testing.T, err error) {
	t.Helper()
	if p := problemOf(err); p.status != 400 || p.detail == "" {
		t.Errorf("refused with %d %q", p.status, p.detail)
	}
}

// FuzzIDs compares the list parser with itself printed, and the fast path of
// /api/users/{id} with the parser of ids.
func FuzzIDs(f *testing.F) {
	for _, text := range []string{"1", "1,2,3", "", ",", "1,", "01", "9223372036854775807", "9223372036854775808", "1?x", "%31"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ids, err := appendIDs(nil, text, "ids", MaxQueryIDs)
		if err != nil {
			refused(t, err)
		} else {
			var printed []byte
			for i, id := range ids {
				if i > 0 {
					printed = append(printed, ',')
				}
				printed = codec.AppendInt(printed, id)
			}
			if string(printed) != string(text) {
				t.Errorf("%q was read as %q", text, printed)
			}
		}
		id, ok := userPath(append([]byte("/api/users/"), text...))
		if want, wantOK := codec.ParseID(text); wantOK && (!ok || id != want) {
			t.Errorf("/api/users/%s: %d %v, want %d", text, id, ok, want)
		}
	})
}
