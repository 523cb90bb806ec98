package users

import (
	"time"

	"pinion/codec"
)

// appendUser appends u as a JSON object. The fields of degraded sources are null.
// A user without attributes has an empty object, one that is no member has null.
func appendUser(dst []byte, u *User, degraded Degraded) []byte {
	dst = append(dst, `{"id":`...)
	dst = codec.AppendInt(dst, u.ID)
	dst = append(dst, `,"name":`...)
	dst = codec.AppendString(dst, u.Name)
	dst = append(dst, `,"email":`...)
	dst = codec.AppendString(dst, u.Email)
	dst = append(dst, `,"phone":`...)
	dst = codec.AppendString(dst, u.Phone)
	dst = append(dst, `,"avatar":`...)
	dst = codec.AppendString(dst, u.Avatar)
	dst = append(dst, `,"status":`...)
	dst = codec.AppendInt(dst, int64(u.Status))
	dst = append(dst, `,"city_id":`...)
	dst = codec.AppendInt(dst, u.CityID)
	dst = append(dst, `,"last_login_at":`...)
	dst = appendTimeOrNull(dst, u.LastLoginAt)
	dst = append(dst, `,"created_at":`...)
	dst = codec.AppendTime(dst, u.CreatedAt)
	dst = append(dst, `,"updated_at":`...)
	dst = codec.AppendTime(dst, u.UpdatedAt)
	dst = append(dst, `,"attributes":`...)
	if degraded&DegradedAttributes != 0 {
		dst = append(dst, "null"...)
	} else {
		dst = appendAttributes(dst, u.Attributes)
	}
	dst = append(dst, `,"member":`...)
	if degraded&DegradedMember != 0 || u.Member == nil {
		return append(dst, "null}"...)
	}
	dst = append(dst, `{"level":`...)
	dst = codec.AppendString(dst, u.Member.Level)
	dst = append(dst, `,"points":`...)
	dst = codec.AppendInt(dst, u.Member.Points)
	return append(dst, "}}"...)
}

func appendTimeOrNull(dst []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(dst, "null"...)
	}
	return codec.AppendTime(dst, t)
}

func appendAttributes(dst []byte, attrs []Attribute) []byte {
	dst = append(dst, '{')
	for i, a := range attrs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = codec.AppendString(dst, a.Key)
		dst = append(dst, ':')
		dst = codec.AppendString(dst, a.Value)
	}
	return append(dst, '}')
}
