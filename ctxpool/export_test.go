package ctxpool

// Slots returns the number of slots.
func (p *Pool[T]) Slots() int {
	return len(p.slots)
}
