package users

import "math"

// Degraded is what an answer lacks because sources failed. The zero value means that
// none did.
type Degraded uint8

// The members of the set. The first two are named on the wire like the field they leave
// null. DegradedStale, "stale", says that Rows could not be read, and that the answer is
// an older one.
const (
	DegradedAttributes Degraded = 1 << iota
	DegradedMember
	DegradedStale
)

// AppendJSON appends the set as a JSON array, as in ["attributes","member","stale"].
func (d Degraded) AppendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	first := len(dst)
	for i, name := range [...]string{`"attributes"`, `"member"`, `"stale"`} {
		if d&(1<<i) == 0 {
			continue
		}
		if len(dst) > first {
			dst = append(dst, ',')
		}
		dst = append(dst, name...)
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
	// expires is when the fragment is fresh no longer, by the clock of the cache. It is
	// set before the fragment is shared.
	expires int64
}

// JSON returns the user's JSON object, or nil when the user is not there. It must
// not be written to; appending to it copies.
func (f *Fragment) JSON() []byte { return f.json }

// Missing reports whether there is no user of this id.
func (f *Fragment) Missing() bool { return f.json == nil }

// Degraded returns what the answer lacks because sources failed.
func (f *Fragment) Degraded() Degraded { return f.degraded }

// stale is f for the time in which it is answered although it is not fresh.
func (f *Fragment) stale() *Fragment {
	return &Fragment{json: f.json, held: f.held, degraded: f.degraded | DegradedStale}
}

// newFragment takes over json. The capacity is cut so that a reader that appends
// cannot write into bytes that others share.
func newFragment(json []byte, degraded Degraded) *Fragment {
	return &Fragment{json: json[:len(json):len(json)], held: uint32(cap(json)), degraded: degraded}
}

// newMissing returns the fragment of all ids that have no user. They are not kept for
// longer than they are fresh.
func newMissing() *Fragment { return &Fragment{expires: math.MaxInt64} }
