package users

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write the golden files anew")

// encodeCases are users at the edges of what a source may hold.
func encodeCases() map[string]struct {
	user     User
	degraded Degraded
} {
	full := User{
		ID: 1, Name: "Zoë Müller", Email: "zoe@example.com", Phone: "+1-202-555-0100", Avatar: "https://img.example.com/1.webp",
		Status: 1, CityID: 3,
		LastLoginAt: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC),
		CreatedAt:   time.Date(2025, 1, 2, 15, 4, 5, 123456000, time.UTC),
		UpdatedAt:   time.Date(2025, 6, 2, 17, 4, 5, 120000000, time.FixedZone("", 7200)),
		Attributes:  []Attribute{{"k", "v"}, {"schlüssel", "\"wert\"\n"}},
		Member:      &Member{Level: "gold", Points: 1200},
	}
	nasty := full
	nasty.ID, nasty.Status, nasty.CityID = math.MaxInt64, -1, math.MinInt64
	nasty.Name = "\x00\x1f\"\\/</script>\u2028\u2029\x7f👩‍🚀"
	nasty.Email = "invalid \xff\xed\xa0\x80 UTF-8"
	nasty.Attributes = []Attribute{{"", ""}, {"\"", "\\"}}
	nasty.Member = &Member{Level: "\n", Points: math.MinInt64}
	nasty.CreatedAt, nasty.UpdatedAt = time.Time{}, time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)
	type c = struct {
		user     User
		degraded Degraded
	}
	return map[string]c{
		"full":                {full, 0},
		"zero":                {User{}, 0},
		"nasty":               {nasty, 0},
		"degraded_attributes": {full, DegradedAttributes},
		"degraded_member":     {full, DegradedMember},
		"degraded_both":       {full, DegradedAttributes | DegradedMember},
	}
}

func TestAppendUserGolden(t *testing.T) {
	for name, c := range encodeCases() {
		got := append(appendUser(nil, &c.user, c.degraded), '\n')
		path := "testdata/user_" + name + ".json"
		if *update {
			if err := os.WriteFile(path, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

// wireUser is the contract, as encoding/json reads it.
type wireUser struct {
	ID          int64              `json:"id"`
	Name        string             `json:"name"`
	Email       string             `json:"email"`
	Phone       string             `json:"phone"`
	Avatar      string             `json:"avatar"`
	Status      int64              `json:"status"`
	CityID      int64              `json:"city_id"`
	LastLoginAt *time.Time         `json:"last_login_at"`
	CreatedAt   time.Time          `json:"created_at"`
	UpdatedAt   time.Time          `json:"updated_at"`
	Attributes  *map[string]string `json:"attributes"`
	Member      *wireMember        `json:"member"`
}

type wireMember struct {
	Level  string `json:"level"`
	Points int64  `json:"points"`
}

// wire is what u must read back as. Invalid UTF-8 becomes U+FFFD, byte by byte.
func wire(u *User, degraded Degraded) wireUser {
	text := func(s string) string { return string([]rune(s)) }
	w := wireUser{
		ID: u.ID, Name: text(u.Name), Email: text(u.Email), Phone: text(u.Phone), Avatar: text(u.Avatar),
		Status: int64(u.Status), CityID: u.CityID, CreatedAt: u.CreatedAt.UTC(), UpdatedAt: u.UpdatedAt.UTC(),
	}
	if !u.LastLoginAt.IsZero() {
		w.LastLoginAt = ptr(u.LastLoginAt.UTC())
	}
	if degraded&DegradedAttributes == 0 {
		m := make(map[string]string)
		for _, a := range u.Attributes {
			m[text(a.Key)] = text(a.Value)
		}
		w.Attributes = &m
	}
	if degraded&DegradedMember == 0 && u.Member != nil {
		w.Member = &wireMember{Level: text(u.Member.Level), Points: u.Member.Points}
	}
	return w
}

func checkRoundTrip(t *testing.T, u *User, degraded Degraded) {
	t.Helper()
	data := appendUser([]byte("x"), u, degraded)[1:]
	if !utf8.Valid(data) {
		t.Errorf("not UTF-8: %q", data)
	}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	var got wireUser
	if err := dec.Decode(&got); err != nil {
		t.Fatalf("%v in %q", err, data)
	}
	if want := wire(u, degraded); !reflect.DeepEqual(got, want) {
		t.Errorf("%q\n got %+v\nwant %+v", data, got, want)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil || len(keys) != 12 {
		t.Errorf("%d keys, %v; want 12: %q", len(keys), err, data)
	}
}

func TestAppendUserRoundTrip(t *testing.T) {
	for name, c := range encodeCases() {
		t.Run(name, func(t *testing.T) { checkRoundTrip(t, &c.user, c.degraded) })
	}
}

func FuzzAppendUser(f *testing.F) {
	for _, c := range encodeCases() {
		key, value, level := "k", "v", "gold"
		f.Add(c.user.ID, c.user.Name, c.user.Email, c.user.Status, c.user.LastLoginAt.UnixMicro(), key, value, level, int64(5), uint8(c.degraded))
	}
	f.Add(int64(-1), "\xc0\x80", "\u2028", 7, int64(math.MaxInt64), "\x00", "\"", "\\", int64(-5), uint8(0))
	f.Fuzz(func(t *testing.T, id int64, name, email string, status int, micros int64, key, value, level string, points int64, degraded uint8) {
		// What sources may hold: years that RFC 3339 can write.
		const first, last = -62135596800_000000, 253402300799_999999
		at := time.UnixMicro(min(max(micros, first), last)).UTC()
		u := User{
			ID: id, Name: name, Email: email, Phone: value, Avatar: key, Status: status, CityID: points,
			LastLoginAt: at, CreatedAt: at, UpdatedAt: at,
			Attributes: []Attribute{{key, value}}, Member: &Member{Level: level, Points: points},
		}
		checkRoundTrip(t, &u, Degraded(degraded)&(DegradedAttributes|DegradedMember))
	})
}

func TestDegradedAppendJSON(t *testing.T) {
	for d, want := range map[Degraded]string{
		0:                                   `x[]`,
		DegradedAttributes:                  `x["attributes"]`,
		DegradedMember:                      `x["member"]`,
		DegradedAttributes | DegradedMember: `x["attributes","member"]`,
		DegradedStale:                       `x["stale"]`,
		DegradedMember | DegradedStale:      `x["member","stale"]`,

		DegradedAttributes | DegradedMember | DegradedStale: `x["attributes","member","stale"]`,
	} {
		if got := string(d.AppendJSON([]byte("x"))); got != want {
			t.Errorf("%d: got %s, want %s", d, got, want)
		}
	}
}

// Appending to what a reader was given must not reach what others share.
func TestFragmentIsShared(t *testing.T) {
	f := newFragment(append(make([]byte, 0, 64), `{"id":1}`...), 0)
	_ = append(f.JSON(), "one"...)
	if got := string(append(f.JSON(), "two"...)); got != `{"id":1}two` || cap(f.JSON()) != len(f.JSON()) {
		t.Errorf("got %s, capacity %d of %d", got, cap(f.JSON()), len(f.JSON()))
	}
}
