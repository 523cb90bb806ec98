package users

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of what a write may carry. Lengths are bytes.
const (
	MaxName           = 256
	MaxEmail          = 254 // RFC 5321 section 4.5.3.1.3, less the two angle brackets
	MaxPhone          = 32
	MaxAvatar         = 2048
	MaxAddress        = 32 << 10
	MaxStatus         = 1<<15 - 1
	MaxAttributes     = 64
	MaxAttributeKey   = 64
	MaxAttributeValue = 1024

	// MaxAttributesBytes bounds all keys and values of a user together: they are part
	// of every answer that has the user.
	MaxAttributesBytes = 8 << 10
)

// NewUser is the input of a create.
type NewUser struct {
	Name       string // required
	Email      string // required
	Phone      string
	Avatar     string
	Status     int
	CityID     int64
	Address    string
	Attributes []Attribute // any order

	// Key makes a retry safe: a create with a key seen before answers the user that was
	// created then, or ErrKeyReused if the content differs. Keys are remembered for a
	// day. It should hold who the caller is as well as the caller's own key. Empty: none.
	Key string
}

// Validate returns a *FieldError for the first field that breaks a limit.
func (u *NewUser) Validate() error {
	return firstError(
		checkName(u.Name),
		checkEmail(u.Email),
		checkText("phone", u.Phone, MaxPhone),
		checkText("avatar", u.Avatar, MaxAvatar),
		checkStatus(u.Status),
		checkCity(u.CityID),
		checkText("address", u.Address, MaxAddress),
		checkAttributes(u.Attributes),
	)
}

// Patch is the input of an update. A nil field stays as it is.
type Patch struct {
	Name        *string
	Email       *string
	Phone       *string
	Avatar      *string
	Status      *int
	CityID      *int64
	Address     *string
	Attributes  *[]Attribute // replaces all attributes; any order
	LastLoginAt *time.Time   // the zero time means never
}

// Validate returns a *FieldError for the first named field that breaks a limit.
// The empty patch is valid.
func (p *Patch) Validate() error {
	var errs [9]*FieldError
	if p.Name != nil {
		errs[0] = checkName(*p.Name)
	}
	if p.Email != nil {
		errs[1] = checkEmail(*p.Email)
	}
	if p.Phone != nil {
		errs[2] = checkText("phone", *p.Phone, MaxPhone)
	}
	if p.Avatar != nil {
		errs[3] = checkText("avatar", *p.Avatar, MaxAvatar)
	}
	if p.Status != nil {
		errs[4] = checkStatus(*p.Status)
	}
	if p.CityID != nil {
		errs[5] = checkCity(*p.CityID)
	}
	if p.Address != nil {
		errs[6] = checkText("address", *p.Address, MaxAddress)
	}
	if p.Attributes != nil {
		errs[7] = checkAttributes(*p.Attributes)
	}
	if p.LastLoginAt != nil {
		errs[8] = checkTime("last_login_at", *p.LastLoginAt)
	}
	return firstError(errs[:]...)
}

// Empty reports whether the patch names no field.
func (p *Patch) Empty() bool { return *p == Patch{} }

// firstError turns the typed nils of the checks into a plain nil error.
func firstError(errs ...*FieldError) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkName(s string) *FieldError {
	if s == "" {
		return &FieldError{Field: "name", Reason: "must not be empty"}
	}
	return checkText("name", s, MaxName)
}

// checkEmail refuses what cannot be an address at all. Whether mail arrives there
// is nothing a pattern can tell.
func checkEmail(s string) *FieldError {
	if s == "" {
		return &FieldError{Field: "email", Reason: "must not be empty"}
	}
	if err := checkText("email", s, MaxEmail); err != nil {
		return err
	}
	local, domain, ok := strings.Cut(s, "@")
	if !ok || local == "" || domain == "" || strings.Contains(domain, "@") {
		return &FieldError{Field: "email", Reason: "must have one @ with text on both sides"}
	}
	for _, r := range s {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return &FieldError{Field: "email", Reason: "must not hold spaces or control characters"}
		}
	}
	return nil
}

func checkText(field, s string, limit int) *FieldError {
	if len(s) > limit {
		return &FieldError{Field: field, Reason: "must be at most " + strconv.Itoa(limit) + " bytes"}
	}
	return checkStorable(field, s)
}

// checkStorable keeps texts to what every source can store.
func checkStorable(field, s string) *FieldError {
	if !utf8.ValidString(s) {
		return &FieldError{Field: field, Reason: "must be valid UTF-8"}
	}
	if strings.IndexByte(s, 0) >= 0 { // Postgres stores none
		return &FieldError{Field: field, Reason: "must not hold the character U+0000"}
	}
	return nil
}

func checkStatus(n int) *FieldError {
	if n < 0 || n > MaxStatus {
		return &FieldError{Field: "status", Reason: "must be between 0 and " + strconv.Itoa(MaxStatus)}
	}
	return nil
}

func checkCity(id int64) *FieldError {
	if id < 0 {
		return &FieldError{Field: "city_id", Reason: "must not be negative"}
	}
	return nil
}

// checkTime keeps times to what RFC 3339 can write and every source can store.
func checkTime(field string, t time.Time) *FieldError {
	if y := t.UTC().Year(); y < 1 || y > 9999 {
		return &FieldError{Field: field, Reason: "must be in the years 1 to 9999"}
	}
	return nil
}

func checkAttributes(attrs []Attribute) *FieldError {
	const field = "attributes"
	if len(attrs) > MaxAttributes {
		return &FieldError{Field: field, Reason: "must be at most " + strconv.Itoa(MaxAttributes)}
	}
	total := 0
	for i, a := range attrs {
		if total += len(a.Key) + len(a.Value); total > MaxAttributesBytes {
			return &FieldError{Field: field, Reason: "must be at most " + strconv.Itoa(MaxAttributesBytes) + " bytes together"}
		}
		if a.Key == "" {
			return &FieldError{Field: field, Reason: "must not have an empty key"}
		}
		if len(a.Key) > MaxAttributeKey {
			return &FieldError{Field: field, Reason: "must have keys of at most " + strconv.Itoa(MaxAttributeKey) + " bytes"}
		}
		if len(a.Value) > MaxAttributeValue {
			return &FieldError{Field: field, Reason: "must have values of at most " + strconv.Itoa(MaxAttributeValue) + " bytes"}
		}
		for _, text := range []string{a.Key, a.Value} {
			if err := checkStorable(field, text); err != nil {
				return err
			}
		}
		// At most MaxAttributes entries: the plain double loop is bounded, and needs no map.
		for _, b := range attrs[:i] {
			if a.Key == b.Key {
				return &FieldError{Field: field, Reason: "must not repeat a key"}
			}
		}
	}
	return nil
}
