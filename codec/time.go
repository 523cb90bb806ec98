package codec

import "time"

// AppendTime appends t as a quoted RFC 3339 time in UTC, with a fraction of up
// to nine digits, trailing zeros cut, when t is not a whole second.
//
// RFC 3339 has four digits for the year (section 5.6). A time before year 0 is
// written as the first instant of that year and one after year 9999 as the
// last, so that the output can always be read back.
func AppendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	switch year := t.Year(); {
	case year < 0:
		return append(dst, `"0000-01-01T00:00:00Z"`...)
	case year > 9999:
		return append(dst, `"9999-12-31T23:59:59.999999999Z"`...)
	}
	dst = append(dst, '"')
	dst = t.AppendFormat(dst, time.RFC3339Nano)
	return append(dst, '"')
}
