package codec

import "strconv"

// AppendInt appends n in decimal.
func AppendInt(dst []byte, n int64) []byte {
	return strconv.AppendInt(dst, n, 10)
}

// AppendBool appends true or false.
func AppendBool(dst []byte, b bool) []byte {
	return strconv.AppendBool(dst, b)
}
