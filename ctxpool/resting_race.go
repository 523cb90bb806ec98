//go:build race

package ctxpool

import (
	"fmt"
	"sync"
	"weak"
)

// resting knows the values that are in a pool, to find one that is put twice.
// Its pointers are weak because a sync.Pool drops values without a word.
type resting[T any] struct {
	mu     sync.Mutex
	values map[weak.Pointer[T]]struct{}
	sweep  int // size at which values that are gone are thrown out
}

// enter notes that v comes to rest. It panics if v is at rest already: in a
// race build that is a test's failure, and the stack names the second Put.
func (r *resting[T]) enter(v *T) {
	w := weak.Make(v)
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.values[w]; ok {
		panic(fmt.Sprintf("ctxpool: %T put twice", v))
	}
	if r.values == nil {
		r.values = make(map[weak.Pointer[T]]struct{})
	}
	if len(r.values) >= r.sweep {
		for w := range r.values {
			if w.Value() == nil {
				delete(r.values, w)
			}
		}
		r.sweep = 2*len(r.values) + 64
	}
	r.values[w] = struct{}{}
}

// leave notes that v is taken out.
func (r *resting[T]) leave(v *T) {
	r.mu.Lock()
	delete(r.values, weak.Make(v))
	r.mu.Unlock()
}
