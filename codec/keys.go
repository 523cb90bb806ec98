package codec

import (
	"hash/maphash"
	"math/bits"
)

// fewKeys is the number of keys up to which comparing a new key with each
// earlier one is cheaper than hashing.
const fewKeys = 16

// keptEntries caps the table a keySet keeps from one document to the next.
const keptEntries = 4096

// keySet finds the keys an object repeats. It knows every object that is open,
// because an object's next key may come after another object inside it.
//
// The first keys of an object are compared one by one. From then on they are
// hashed, under a seed the sender of the document cannot know, so that no
// choice of keys makes it slow.
type keySet struct {
	few   [][]byte // the first keys of the open objects, outermost object first
	table []entry  // the keys of the large ones; its length is a power of two
	used  int      // entries of table in use
	large int      // large objects seen in this document

	text []byte // keys of the large objects, and those written with escapes, without them
	seed maphash.Seed
}

// entry is one key of a large object. Entries of closed objects stay until the
// document ends: their number never comes again. It holds no pointer, so that
// the garbage collector need not look at the table.
type entry struct {
	hash       uint64
	start, end int // where the key is in text
	object     int // number of the large object, counted from 1; 0 marks a free entry
}

// scope is one open object.
type scope struct {
	base   int // where its keys start in few
	object int // its number once it is large
}

func (k *keySet) enter() scope {
	return scope{base: len(k.few)}
}

func (k *keySet) leave(o scope) {
	clear(k.few[o.base:]) // hold on to nobody's body
	k.few = k.few[:o.base]
}

// add notes a key of o, which must be the innermost open object. It returns
// false if o has the key already. The bytes must stay until the document ends.
func (k *keySet) add(o *scope, key []byte) bool {
	mine := k.few[o.base:]
	if len(mine) < fewKeys {
		for _, other := range mine {
			if string(other) == string(key) {
				return false
			}
		}
		k.few = append(k.few, key)
		return true
	}
	if o.object == 0 {
		k.large++
		o.object = k.large
		for _, other := range mine {
			k.insert(o.object, other)
		}
	}
	return k.insert(o.object, key)
}

// unescape returns the text of a key that was written as raw, which the scanner
// has checked and which holds an escape.
func (k *keySet) unescape(raw []byte) []byte {
	start := len(k.text)
	k.text = appendUnescaped(k.text, raw)
	return k.text[start:]
}

func (k *keySet) insert(object int, key []byte) bool {
	if k.seed == (maphash.Seed{}) {
		k.seed = maphash.MakeSeed()
	}
	if 4*k.used >= 3*len(k.table) {
		k.grow()
	}
	hash := mix(maphash.Bytes(k.seed, key), object)
	i := k.find(object, hash, key)
	if k.table[i].object != 0 {
		return false
	}
	start := len(k.text)
	k.text = append(k.text, key...)
	k.table[i] = entry{hash: hash, start: start, end: len(k.text), object: object}
	k.used++
	return true
}

// mix spreads the same key of different objects over the table: were the
// objects to lie side by side, so would their clusters.
func mix(hash uint64, object int) uint64 {
	const odd = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	high, low := bits.Mul64(hash^uint64(object)*odd, odd)
	return high ^ low
}

// find returns the index of the entry of the key, or of the free one where it
// belongs.
func (k *keySet) find(object int, hash uint64, key []byte) int {
	i := k.first(hash)
	for e := k.table[i]; e.object != 0; e = k.table[i] {
		if e.hash == hash && e.object == object && string(k.text[e.start:e.end]) == string(key) {
			break
		}
		i = k.next(i)
	}
	return i
}

func (k *keySet) first(hash uint64) int { return int(hash) & (len(k.table) - 1) }

func (k *keySet) next(i int) int { return (i + 1) & (len(k.table) - 1) }

func (k *keySet) grow() {
	old := k.table
	k.table = make([]entry, max(8*fewKeys, 2*len(old)))
	for _, e := range old {
		if e.object == 0 {
			continue
		}
		i := k.first(e.hash)
		for k.table[i].object != 0 {
			i = k.next(i)
		}
		k.table[i] = e
	}
}

// reset forgets the document, and what a large one made it allocate.
func (k *keySet) reset() {
	k.leave(scope{})
	k.text = k.text[:0]
	switch {
	case len(k.table) > keptEntries:
		k.table, k.text = nil, nil
	case k.used > 0:
		clear(k.table)
	}
	k.used, k.large = 0, 0
}
