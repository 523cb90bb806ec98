package codec

// What fastjson allocates, in bytes on a 64-bit machine, slack of append left
// out.
const (
	arenaValueSize  = 80 // a value
	arenaMemberSize = 24 // a member of an object; an element of an array is less
)

// arena adds up the memory a fastjson parser holds on to.
//
// The parser keeps its values in one list for good, and with each of them the
// longest list of members it ever had. Documents of modest length, each with
// its one long array at another position, would so make it hold many times
// what any of them needs. The scanner counts along and the [Decoder] lets go
// of a parser that holds too much.
type arena struct {
	values  int   // values so far in this document that fastjson allocates: all but true, false and null
	most    int   // the largest such count of any document
	longest []int // the most members of the value at each position, over all documents
	members int   // sum of longest
}

// begin starts a document.
func (a *arena) begin() {
	a.values = 0
}

// open notes the start of an array or object and returns its position.
func (a *arena) open() int {
	a.values++
	return a.values - 1
}

// close notes that the value at position has n members.
func (a *arena) close(position, n int) {
	for len(a.longest) <= position {
		a.longest = append(a.longest, 0)
	}
	if grown := n - a.longest[position]; grown > 0 {
		a.longest[position] = n
		a.members += grown
	}
}

// end finishes a document and returns how many bytes the parser holds.
func (a *arena) end() int {
	a.most = max(a.most, a.values)
	return a.most*arenaValueSize + a.members*arenaMemberSize
}
