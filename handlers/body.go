package handlers

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"pinion/codec"
	"pinion/users"
)

// decodeBody reads the request's body as one strict JSON object. The value is
// valid until the decoder is used again or the request ends.
func decodeBody(ctx *fasthttp.RequestCtx, d *codec.Decoder) (codec.Value, error) {
	if err := checkBodyType(&ctx.Request.Header); err != nil {
		return codec.Value{}, err
	}
	body := ctx.PostBody()
	if len(body) > MaxBodyBytes {
		return codec.Value{}, errBodyTooLarge()
	}
	root, err := d.Decode(body)
	if err != nil {
		return codec.Value{}, err
	}
	if root.Kind() != codec.Object {
		return codec.Value{}, badRequest("the body must be a JSON object")
	}
	return root, nil
}

// checkBodyType accepts application/json in UTF-8, sent as it is.
func checkBodyType(h *fasthttp.RequestHeader) error {
	media, params, _ := bytes.Cut(h.ContentType(), []byte{';'})
	if !bytes.EqualFold(bytes.TrimSpace(media), []byte(contentJSON)) {
		return unsupported("a body must be sent with Content-Type: " + contentJSON)
	}
	for param := range bytes.SplitSeq(params, []byte{';'}) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(param), []byte{'='})
		if bytes.EqualFold(name, []byte("charset")) && !bytes.EqualFold(bytes.Trim(value, `"`), []byte("utf-8")) {
			return unsupported("JSON is UTF-8; charset is another one")
		}
	}
	if enc := h.Peek(fasthttp.HeaderContentEncoding); len(enc) > 0 && !bytes.EqualFold(enc, []byte("identity")) {
		return unsupported("a body must be sent without Content-Encoding")
	}
	return nil
}

func unsupported(detail string) *problem {
	return &problem{status: fasthttp.StatusUnsupportedMediaType, detail: detail}
}

// lookupIDs reads {"ids":[…]}.
func lookupIDs(dst []int64, root codec.Value) ([]int64, error) {
	found := false
	for key, v := range root.Members() {
		if string(key) != "ids" {
			return dst, unknownKey(key)
		}
		found = true
		if v.Kind() != codec.Array {
			return dst, &users.FieldError{Field: "ids", Reason: "must be an array"}
		}
		if v.Len() > MaxLookupIDs {
			return dst, &users.FieldError{Field: "ids", Reason: "takes at most " + strconv.Itoa(MaxLookupIDs) + " values"}
		}
		for e := range v.Elements() {
			id, err := e.Int64()
			if err != nil || id <= 0 {
				return dst, &users.FieldError{Field: "ids", Reason: "every value must be a positive 64-bit integer"}
			}
			dst = append(dst, id)
		}
	}
	if !found {
		return dst, &users.FieldError{Field: "ids", Reason: "is required"}
	}
	return dst, nil
}

// unknownKey quotes a key that the client made up, cut to a sane length.
func unknownKey(key []byte) error {
	const most = 64
	text := string(key)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return badRequest("the body has an unknown key " + strconv.Quote(text))
}

// newUser reads the body of a POST. What its values may be is the business of
// users.Service.
func newUser(root codec.Value) (users.NewUser, error) {
	p, err := patch(root)
	if err != nil {
		return users.NewUser{}, err
	}
	if p.LastLoginAt != nil {
		return users.NewUser{}, unknownKey([]byte("last_login_at"))
	}
	u := users.NewUser{Status: 1}
	set(&u.Name, p.Name)
	set(&u.Email, p.Email)
	set(&u.Phone, p.Phone)
	set(&u.Avatar, p.Avatar)
	set(&u.Status, p.Status)
	set(&u.CityID, p.CityID)
	set(&u.Address, p.Address)
	set(&u.Attributes, p.Attributes)
	return u, nil
}

func set[T any](dst, value *T) {
	if value != nil {
		*dst = *value
	}
}

// patch reads the body of a PATCH. A null is an error: no field of a user can
// be unset, except by an empty string.
func patch(root codec.Value) (users.Patch, error) {
	var p users.Patch
	for key, v := range root.Members() {
		var err error
		switch string(key) {
		case "name":
			p.Name, err = pointer(v.Text())
		case "email":
			p.Email, err = pointer(v.Text())
		case "phone":
			p.Phone, err = pointer(v.Text())
		case "avatar":
			p.Avatar, err = pointer(v.Text())
		case "address":
			p.Address, err = pointer(v.Text())
		case "city_id":
			p.CityID, err = pointer(v.Int64())
		case "status":
			p.Status, err = pointer(intValue(v))
		case "last_login_at":
			p.LastLoginAt, err = pointer(timeValue(v))
		case "attributes":
			p.Attributes, err = pointer(attributes(v))
		default:
			return p, unknownKey(key)
		}
		if err != nil {
			return p, badRequest(fmt.Sprintf("%s: %v", key, err))
		}
	}
	return p, nil
}

func pointer[T any](v T, err error) (*T, error) { return &v, err }

func intValue(v codec.Value) (int, error) {
	n, err := v.Int64()
	if err == nil && int64(int(n)) != n {
		return 0, badRequest("is out of range")
	}
	return int(n), err
}

func timeValue(v codec.Value) (time.Time, error) {
	text, err := v.Bytes()
	if err != nil {
		return time.Time{}, err
	}
	return parseTime(text)
}

// parseTime reads a time as RFC 3339, section 5.6, writes it, and no other:
// time.Parse would take 3:04:05 and offsets of a day. Letters may be small.
func parseTime(text []byte) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, string(bytes.ToUpper(text)))
	if err != nil || !strictTime(text) {
		return t, badRequest("must be a time as in RFC 3339: 2026-01-02T15:04:05Z")
	}
	return t.UTC(), nil
}

// strictTime refuses what time.Parse lets through: an hour of one digit, a
// comma before the fraction, an offset beyond 23:59.
func strictTime(text []byte) bool {
	const seconds = len("2026-01-02T15:04:05")
	if len(text) <= seconds || text[len("2026-01-02T15")] != ':' || text[seconds] == ',' {
		return false
	}
	offset := text[len(text)-min(len(text), len("+00:00")):]
	if offset[0] != '+' && offset[0] != '-' {
		return true // it ends in Z
	}
	return string(offset[1:3]) < "24" && string(offset[4:]) < "60"
}

// attributes reads an object of strings, sorted by key.
func attributes(v codec.Value) ([]users.Attribute, error) {
	if v.Kind() != codec.Object {
		return nil, badRequest("must be an object of strings")
	}
	list := make([]users.Attribute, 0, v.Len())
	for key, e := range v.Members() {
		text, err := e.Text()
		if err != nil {
			return nil, badRequest("must be an object of strings")
		}
		list = append(list, users.Attribute{Key: string(key), Value: text})
	}
	slices.SortFunc(list, func(a, b users.Attribute) int { return strings.Compare(a.Key, b.Key) })
	return list, nil
}
