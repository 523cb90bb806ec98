package accesslog

import (
	"net"
	"net/netip"
	"unicode/utf8"

	"pinion/codec"
	"pinion/handlers"
)

// textBytes is how much of any one text is logged.
const textBytes = 1 << 10

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

// appendLine appends e as one line of JSON.
func appendLine(dst []byte, e *handlers.Entry, from remote) []byte {
	dst = append(dst, `{"time":`...)
	dst = codec.AppendTime(dst, e.Time)
	if len(e.RequestID) > 0 {
		dst = appendText(dst, "request_id", e.RequestID)
	}
	switch {
	case from.ip.IsValid():
		dst = append(dst, `,"remote":"`...)
		dst = from.ip.AppendTo(dst) // without a zone: nothing to escape
		dst = append(dst, '"')
	case from.name != "":
		dst = appendText(dst, "remote", from.name)
	}
	dst = appendText(dst, "method", e.Method)
	dst = appendText(dst, "path", e.Path)
	if len(e.Query) > 0 {
		dst = appendText(dst, "query", e.Query)
	}
	dst = appendText(dst, "handler", e.Handler)
	dst = append(dst, `,"status":`...)
	dst = codec.AppendInt(dst, int64(e.Status))
	dst = append(dst, `,"bytes":`...)
	dst = codec.AppendInt(dst, int64(e.Bytes))
	dst = append(dst, `,"duration_us":`...)
	dst = codec.AppendInt(dst, e.Duration.Microseconds())
	if e.Panic {
		dst = append(dst, `,"panic":true`...)
	}
	return append(dst, "}\n"...)
}

// appendText appends a member with the value s, cut to textBytes. name needs no
// escaping.
func appendText[T ~string | ~[]byte](dst []byte, name string, s T) []byte {
	dst = append(dst, `,"`...)
	dst = append(dst, name...)
	dst = append(dst, `":`...)
	if len(s) <= textBytes {
		return codec.AppendString(dst, s)
	}
	end := textBytes
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
