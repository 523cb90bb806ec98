package rediscache

import (
	"strconv"

	"pinion/codec"
)

// texts makes the keys and arguments of a command for many users in one piece of memory. One
// by one they would be most of what such a call allocates.
type texts struct {
	buf  []byte
	ends []int // of the texts, in buf
}

// newTexts has room for n texts of size bytes together.
func newTexts(n, size int) texts {
	return texts{buf: make([]byte, 0, size), ends: make([]int, 0, n)}
}

// maxDigits is what an id or a lease takes at most.
const maxDigits = 20

func (t *texts) end() { t.ends = append(t.ends, len(t.buf)) }

// key adds the key of an id.
func (t *texts) key(prefix string, id int64) {
	t.buf = strconv.AppendInt(append(t.buf, prefix...), id, 10)
	t.end()
}

// number adds n in decimal.
func (t *texts) number(n uint64) {
	t.buf = strconv.AppendUint(t.buf, n, 10)
	t.end()
}

// value adds the value of a user's JSON.
func (t *texts) value(id int64, incarnation uint32, json []byte) {
	t.buf = appendValue(t.buf, id, incarnation, json)
	t.end()
}

// strings returns all texts. Nothing may be added afterwards.
func (t *texts) strings() []string {
	all := make([]string, len(t.ends))
	from := 0
	for i, end := range t.ends {
		all[i] = codec.StringView(t.buf[from:end])
		from = end
	}
	return all
}
