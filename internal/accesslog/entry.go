package accesslog

import (
	"net"
	"net/netip"
	"strconv"
	"unicode/utf8"

	"pinion/codec"
	"pinion/handlers"
)

const (
	// textBytes is how much of any one text is logged.
	textBytes = 1 << 10
	// shortTextBytes is that in a line which would otherwise not fit in a batch: control
	// characters take six bytes each. Five such texts and the rest stay below
	// MinBatchBytes.
	shortTextBytes = 64
)

// remote is the peer's address, in one of two forms.
type remote struct {
	ip   netip.AddrPort
	name string
}

// newRemote asks addr for its name while nothing is claimed yet: a foreign net.Addr
// may do anything.
func newRemote(addr net.Addr) remote {
	switch a := addr.(type) {
	case nil:
		return remote{}
	case *net.TCPAddr:
		if a == nil {
			return remote{}
		}
		if ip, ok := netip.AddrFromSlice(a.IP); ok && a.Zone == "" {
			return remote{ip: netip.AddrPortFrom(ip.Unmap(), uint16(a.Port))}
		}
	case *net.UnixAddr:
		if a == nil {
			return remote{}
		}
		return remote{name: a.Name}
	}
	return remote{name: addr.String()}
}

// tail is what ends a line: what all lines of a Log say, the brace and the newline.
func tail(cell *int) string {
	if cell == nil {
		return "}\n"
	}
	return `,"cell":` + strconv.Itoa(*cell) + "}\n"
}

// appendLine appends e as one line of JSON, its texts cut to limit bytes each.
func appendLine(dst []byte, e *handlers.Entry, from remote, limit int, tail string) []byte {
	dst = append(dst, `{"time":`...)
	dst = codec.AppendTime(dst, e.Time)
	if len(e.RequestID) > 0 {
		dst = appendText(dst, "request_id", e.RequestID, limit)
	}
	switch {
	case from.ip.IsValid():
		dst = append(dst, `,"remote":"`...)
		dst = from.ip.AppendTo(dst) // without a zone: nothing to escape
		dst = append(dst, '"')
	case from.name != "":
		dst = appendText(dst, "remote", from.name, limit)
	}
	dst = appendText(dst, "method", e.Method, limit)
	dst = appendText(dst, "path", e.Path, limit)
	if len(e.Query) > 0 {
		dst = appendText(dst, "query", e.Query, limit)
	}
	dst = appendText(dst, "handler", e.Handler, limit)
	dst = append(dst, `,"status":`...)
	dst = codec.AppendInt(dst, int64(e.Status))
	dst = append(dst, `,"bytes":`...)
	dst = codec.AppendInt(dst, int64(e.Bytes))
	dst = append(dst, `,"duration_us":`...)
	dst = codec.AppendInt(dst, e.Duration.Microseconds())
	if e.Panic {
		dst = append(dst, `,"panic":true`...)
	}
	return append(dst, tail...)
}

// appendText appends a member with the value s, cut to limit bytes. name needs no
// escaping.
func appendText[T ~string | ~[]byte](dst []byte, name string, s T, limit int) []byte {
	dst = append(dst, `,"`...)
	dst = append(dst, name...)
	dst = append(dst, `":`...)
	if len(s) <= limit {
		return codec.AppendString(dst, s)
	}
	end := limit
	// Not in the middle of a rune; but bytes that are not UTF-8 are cut anywhere.
	for i := end; i > end-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			end = i
			break
		}
	}
	dst = codec.AppendString(dst, s[:end])
	dst = append(dst, `,"`...)
	dst = append(dst, name...)
	dst = append(dst, `_len":`...)
	return codec.AppendInt(dst, int64(len(s)))
}
