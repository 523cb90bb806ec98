package users

// Degraded is the set of sources that failed while a user was joined. The zero
// value means that none did.
type Degraded uint8

// The members of the set, named on the wire like the field they leave null.
const (
	DegradedAttributes Degraded = 1 << iota
	DegradedMember
)

// AppendJSON appends the set as a JSON array, as in ["attributes","member"].
func (d Degraded) AppendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	if d&DegradedAttributes != 0 {
		dst = append(dst, `"attributes"`...)
	}
	if d&DegradedMember != 0 {
		if d&DegradedAttributes != 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `"member"`...)
	}
	return append(dst, ']')
}

// Fragment is the finished answer for one id: the user's JSON object, or that
// there is no such user. It is immutable and shared by all readers, also after it
// has left the cache.
type Fragment struct {
	json     []byte
	held     uint32 // bytes that json really occupies
	degraded Degraded
}

// JSON returns the user's JSON object, or nil when the user is not there. It must
// not be written to; appending to it copies.
func (f *Fragment) JSON() []byte { return f.json }

// Missing reports whether there is no user of this id.
func (f *Fragment) Missing() bool { return f.json == nil }

// Degraded returns the sources whose fields are null because they failed.
func (f *Fragment) Degraded() Degraded { return f.degraded }

// newFragment takes over json. The capacity is cut so that a reader that appends
// cannot write into bytes that others share.
func newFragment(json []byte, degraded Degraded) *Fragment {
	return &Fragment{json: json[:len(json):len(json)], held: uint32(cap(json)), degraded: degraded}
}
