package stats

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// desc is the shape of a family: what two registrations of one name must agree on.
type desc struct {
	name   string
	help   string
	kind   Kind
	labels []string
	bounds []float64 // histograms only
}

func (d desc) equal(e desc) bool {
	return d.name == e.name && d.help == e.help && d.kind == e.kind &&
		slices.Equal(d.labels, e.labels) && slices.Equal(d.bounds, e.bounds)
}

// check holds names to the classic Prometheus character set, which every scraper
// reads: https://prometheus.io/docs/concepts/data_model/
func (d desc) check() error {
	if !validName(d.name, true) {
		return fmt.Errorf("stats: %q is not a metric name", d.name)
	}
	for i, l := range d.labels {
		if !validName(l, false) || strings.HasPrefix(l, "__") || (l == "le" && d.kind == KindHistogram) {
			return fmt.Errorf("stats: %s: %q is not a label name", d.name, l)
		}
		if slices.Contains(d.labels[:i], l) {
			return fmt.Errorf("stats: %s: label %q is named twice", d.name, l)
		}
	}
	return nil
}

func validName(s string, colon bool) bool {
	for i, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_':
		case '0' <= c && c <= '9' && i > 0:
		case c == ':' && colon:
		default:
			return false
		}
	}
	return s != ""
}

// vec holds the series of one family by label values.
type vec[T any] struct {
	reg  *Registry
	desc desc

	mu      sync.Mutex
	members map[string]*member[T]
}

type member[T any] struct {
	key    string
	values []string
	it     *T
}

func (v *vec[T]) describe() desc { return v.desc }

func (v *vec[T]) with(values []string, fresh func() *T) *T {
	if len(values) != len(v.desc.labels) {
		v.reg.fail(fmt.Errorf("stats: %s has %d labels, got the values %q", v.desc.name, len(v.desc.labels), values))
		return fresh()
	}
	// Each value is preceded by its length: no two lists of values have one key.
	values = slices.Clone(values)
	var key []byte
	for i, s := range values {
		s = strings.ToValidUTF8(s, "\uFFFD") // or one bad value spoils the whole scrape
		values[i] = s
		key = strconv.AppendInt(key, int64(len(s)), 10)
		key = append(key, ':')
		key = append(key, s...)
	}

	v.mu.Lock()
	defer v.mu.Unlock()
	if m, ok := v.members[string(key)]; ok {
		return m.it
	}
	m := &member[T]{key: string(key), values: values, it: fresh()}
	if v.members == nil {
		v.members = make(map[string]*member[T])
	}
	v.members[m.key] = m
	return m.it
}

// series calls read for each member, in the order of their label values. read runs
// without the lock.
func (v *vec[T]) series(read func(*T, *Series)) []Series {
	v.mu.Lock()
	members := make([]*member[T], 0, len(v.members))
	for _, m := range v.members {
		members = append(members, m)
	}
	v.mu.Unlock()

	slices.SortFunc(members, func(a, b *member[T]) int { return slices.Compare(a.values, b.values) })
	all := make([]Series, len(members))
	for i, m := range members {
		all[i].LabelValues = slices.Clone(m.values)
		read(m.it, &all[i])
	}
	return all
}
