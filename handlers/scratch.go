package handlers

import (
	"slices"

	"pinion/codec"
	"pinion/ctxpool"
	"pinion/users"
)

// scratch is the working memory of one request, reused by the next.
type scratch struct {
	batch   users.Batch
	decoder codec.Decoder
	entry   Entry
	seen    map[int64]struct{}
}

func newScratchPool() *ctxpool.Pool[scratch] {
	return ctxpool.NewPool(0,
		func() *scratch { return &scratch{seen: make(map[int64]struct{})} },
		func(s *scratch) {
			s.batch.Reset()
			s.decoder.Reset()
			s.entry = Entry{}
		})
}

// quadratic is the length up to which comparing each pair of ids beats a map
// (20 ids: 0.1 µs against 0.6).
const quadratic = 48

// distinct drops repeated ids in place and keeps the order of the first ones.
func (s *scratch) distinct(ids []int64) []int64 {
	if ascending(ids) {
		return ids
	}
	kept := ids[:0]
	if len(ids) <= quadratic {
		for _, id := range ids {
			if !slices.Contains(kept, id) {
				kept = append(kept, id)
			}
		}
		return kept
	}
	clear(s.seen)
	for _, id := range ids {
		if _, ok := s.seen[id]; !ok {
			s.seen[id] = struct{}{}
			kept = append(kept, id)
		}
	}
	return kept
}

// ascending reports whether ids rise strictly, as sorted lists of keys do:
// then none is repeated.
func ascending(ids []int64) bool {
	for i := 1; i < len(ids); i++ {
		if ids[i] <= ids[i-1] {
			return false
		}
	}
	return true
}
