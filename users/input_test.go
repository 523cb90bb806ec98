package users

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func attributes(n int) []Attribute {
	attrs := make([]Attribute, n)
	for i := range attrs {
		attrs[i] = Attribute{Key: fmt.Sprint("k", i), Value: "v"}
	}
	return attrs
}

func ptr[T any](v T) *T { return &v }

// valid returns a user with every field at its limit, changed by f.
func valid(f func(*NewUser)) NewUser {
	attrs := attributes(MaxAttributes)
	attrs[0] = Attribute{Key: strings.Repeat("k", MaxAttributeKey), Value: strings.Repeat("v", MaxAttributeValue)}
	u := NewUser{
		Name: strings.Repeat("é", MaxName/2), Email: "a@" + strings.Repeat("b", MaxEmail-2),
		Phone: strings.Repeat("1", MaxPhone), Avatar: strings.Repeat("a", MaxAvatar),
		Status: MaxStatus, CityID: 1<<63 - 1, Address: strings.Repeat("x", MaxAddress), Attributes: attrs,
	}
	f(&u)
	return u
}

func TestValidate(t *testing.T) {
	for i, f := range []func(*NewUser){
		func(*NewUser) {},
		func(u *NewUser) { *u = NewUser{Name: "x", Email: "a@b"} },
		func(u *NewUser) { u.Name = "\x01\n\"\\ 👩‍🚀" },
		func(u *NewUser) { u.Email = "ünï@example.com" },
		func(u *NewUser) { u.Attributes = []Attribute{{Key: "k"}, {Key: "K"}} },
	} {
		u := valid(f)
		if err := u.Validate(); err != nil {
			t.Errorf("case %d: %v", i, err)
		}
		p := asPatch(u)
		if err := p.Validate(); err != nil {
			t.Errorf("case %d as a patch: %v", i, err)
		}
	}
	for _, p := range []Patch{{}, {LastLoginAt: &time.Time{}}, {LastLoginAt: ptr(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC))}} {
		if err := p.Validate(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// asPatch names every field.
func asPatch(u NewUser) Patch {
	return Patch{
		Name: &u.Name, Email: &u.Email, Phone: &u.Phone, Avatar: &u.Avatar, Status: &u.Status,
		CityID: &u.CityID, Address: &u.Address, Attributes: &u.Attributes,
	}
}

func TestValidateFails(t *testing.T) {
	for _, tt := range []struct {
		change func(*NewUser)
		want   string
	}{
		{func(u *NewUser) { u.Name = "" }, "name: must not be empty"},
		{func(u *NewUser) { u.Name += "x" }, "name: must be at most 256 bytes"},
		{func(u *NewUser) { u.Name = "a\xffb" }, "name: must be valid UTF-8"},
		{func(u *NewUser) { u.Name = "a\x00b" }, "name: must not hold the character U+0000"},
		{func(u *NewUser) { u.Attributes[63].Key = "\x00" }, "attributes: must not hold the character U+0000"},
		{func(u *NewUser) { u.Attributes[63].Value = "\x00" }, "attributes: must not hold the character U+0000"},
		{func(u *NewUser) { u.Address = "\x00" }, "address: must not hold the character U+0000"},
		{func(u *NewUser) { u.Email = "" }, "email: must not be empty"},
		{func(u *NewUser) { u.Email += "x" }, "email: must be at most 254 bytes"},
		{func(u *NewUser) { u.Email = "a.example.com" }, "email: must have one @ with text on both sides"},
		{func(u *NewUser) { u.Email = "@example.com" }, "email: must have one @ with text on both sides"},
		{func(u *NewUser) { u.Email = "a@" }, "email: must have one @ with text on both sides"},
		{func(u *NewUser) { u.Email = "a@b@c" }, "email: must have one @ with text on both sides"},
		{func(u *NewUser) { u.Email = "a b@c" }, "email: must not hold spaces or control characters"},
		{func(u *NewUser) { u.Email = "a@c\r\nBcc: d@e"[:5] }, "email: must not hold spaces or control characters"},
		{func(u *NewUser) { u.Email = "a@b\x7f" }, "email: must not hold spaces or control characters"},
		{func(u *NewUser) { u.Email = "a@b\u00a0" }, "email: must not hold spaces or control characters"},
		{func(u *NewUser) { u.Email = "a@b\u2003" }, "email: must not hold spaces or control characters"},
		{func(u *NewUser) { u.Email = "a@\xff" }, "email: must be valid UTF-8"},
		{func(u *NewUser) { u.Phone += "1" }, "phone: must be at most 32 bytes"},
		{func(u *NewUser) { u.Phone = "\x80" }, "phone: must be valid UTF-8"},
		{func(u *NewUser) { u.Avatar += "1" }, "avatar: must be at most 2048 bytes"},
		{func(u *NewUser) { u.Status = -1 }, "status: must be between 0 and 32767"},
		{func(u *NewUser) { u.Status++ }, "status: must be between 0 and 32767"},
		{func(u *NewUser) { u.CityID = -1 }, "city_id: must not be negative"},
		{func(u *NewUser) { u.Address += "1" }, "address: must be at most 32768 bytes"},
		{func(u *NewUser) { u.Attributes = attributes(65) }, "attributes: must be at most 64"},
		{func(u *NewUser) { u.Attributes[1].Key = "" }, "attributes: must not have an empty key"},
		{func(u *NewUser) { u.Attributes[0].Key += "k" }, "attributes: must have keys of at most 64 bytes"},
		{func(u *NewUser) { u.Attributes[0].Value += "v" }, "attributes: must have values of at most 1024 bytes"},
		{func(u *NewUser) { u.Attributes[63].Key = "k1" }, "attributes: must not repeat a key"},
		{func(u *NewUser) { u.Attributes[63].Key = "\xff" }, "attributes: must be valid UTF-8"},
		{func(u *NewUser) { u.Attributes[63].Value = "\xff" }, "attributes: must be valid UTF-8"},
	} {
		u := valid(tt.change)
		p := asPatch(u)
		for _, err := range []error{u.Validate(), p.Validate()} {
			var field *FieldError
			if !errors.As(err, &field) || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		}
	}
	for _, year := range []int{0, -1, 10000} {
		p := Patch{LastLoginAt: ptr(time.Date(year, 1, 2, 0, 0, 0, 0, time.UTC))}
		if err := p.Validate(); err == nil || err.Error() != "last_login_at: must be in the years 1 to 9999" {
			t.Errorf("year %d: %v", year, err)
		}
	}
}

// Every field counts: a patch that names any one of them is not empty.
func TestPatchEmpty(t *testing.T) {
	if p := (Patch{}); !p.Empty() {
		t.Error("the zero patch is not empty")
	}
	for _, p := range []Patch{
		{Name: ptr("")},
		{Email: ptr("")},
		{Phone: ptr("")},
		{Avatar: ptr("")},
		{Status: ptr(0)},
		{CityID: ptr(int64(0))},
		{Address: ptr("")},
		{Attributes: &[]Attribute{}},
		{LastLoginAt: &time.Time{}},
	} {
		if p.Empty() {
			t.Errorf("%+v is empty", p)
		}
	}
}

// TestAttributesTogether: each attribute may be within its limits, and all of
// them too much.
func TestAttributesTogether(t *testing.T) {
	u := NewUser{Name: "n", Email: "a@example.com"}
	for i := range 8 {
		u.Attributes = append(u.Attributes, Attribute{Key: string(rune('a' + i)), Value: strings.Repeat("v", 1023)})
	}
	if err := u.Validate(); err != nil {
		t.Errorf("8 KiB: %v", err)
	}
	u.Attributes[0].Value += "v"
	if err := u.Validate(); err == nil || err.Error() != "attributes: must be at most 8192 bytes together" {
		t.Errorf("one byte more: %v", err)
	}
}
