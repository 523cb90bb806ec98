package affinity

// List is a CPU list as somebody wrote it. Unlike a [Set] it may speak of CPUs
// whose numbers are not known yet: "all", and "N" for the last one; [List.In]
// says which they are. The zero value is "all".
//
// A List is a value: only [List.Set] and [List.UnmarshalText] change it, and
// any number of goroutines may read it. *List is a [flag.Value].
type List struct {
	regions []region // in the order written; never changed once made
	given   bool     // false in the zero value only, which is "all"
}

// ParseList reads a list in the grammar of [ParseSet] and, beyond it, "all",
// which may have a pattern, "all:2/4", and "N" as a CPU or the end of a range,
// "0-N". "all" may be written in capitals, as in the kernel's parser. "" and
// "\n" are the list that names no CPU, see [List.Empty].
//
// It is stricter than the kernel also in that N is not taken as a number in a
// pattern, nor as the start of a range that ends elsewhere.
//
// The error is a [*ParseError].
func ParseList(text string) (List, error) {
	l := List{given: true}
	err := scan(text, func(r region) string {
		l.regions = append(l.regions, r)
		return ""
	})
	if err != nil {
		return List{}, err
	}
	return l, nil
}

// Empty reports whether the list by itself selects nothing, whatever CPUs
// there are: "", "\n" or "0-3:0/4". What an empty list means is the caller's
// to say.
func (l List) Empty() bool {
	for _, r := range l.regions {
		if !r.empty() {
			return false
		}
	}
	return l.given
}

// In returns the CPUs the list selects where allowed are the CPUs to choose
// from: "all" is allowed, "all:2/4" those of allowed whose number leaves 0 or
// 1 when divided by 4, and N the largest number in allowed.
//
// CPUs named by number are in the result whether they are allowed or not, so
// that a wrong one is an error where the result is used ([Topology.Check],
// [Reexec]) and not silently left out. So are all from a number to N, and
// that number also where N is less. Where nothing is allowed, "all" and "N"
// are nothing.
func (l List) In(allowed Set) Set {
	if !l.given {
		return allowed
	}
	var all, named Set
	for _, r := range l.regions {
		r, ok := r.in(allowed)
		switch {
		case !ok:
		case r.all:
			r.addTo(&all)
		default:
			r.addTo(&named)
		}
	}
	return all.Intersect(allowed).Union(named)
}

// String returns the list without spaces, its parts in the order they were
// written and with plain numbers: "all", "0-7,64-N:2/4". [ParseList] reads it
// back.
func (l List) String() string { return string(l.append(nil)) }

// MarshalText returns what [List.String] returns. The error is always nil.
func (l List) MarshalText() ([]byte, error) { return l.append(nil), nil }

// UnmarshalText sets l to what [ParseList] reads from text, and leaves l alone
// on an error.
func (l *List) UnmarshalText(text []byte) error { return l.Set(string(text)) }

// Set does the same for a string, as [flag.Value] wants it.
func (l *List) Set(text string) error {
	parsed, err := ParseList(text)
	if err != nil {
		return err
	}
	*l = parsed
	return nil
}

func (l List) append(dst []byte) []byte {
	if !l.given {
		return append(dst, "all"...)
	}
	for i, r := range l.regions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.append(dst)
	}
	return dst
}
