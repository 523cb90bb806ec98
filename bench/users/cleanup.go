package main

import "slices"

// cleanup is what has to be undone at the end, the last first.
type cleanup struct{ funcs []func() }

func (c *cleanup) add(f func()) { c.funcs = append(c.funcs, f) }

func (c *cleanup) run() {
	for _, f := range slices.Backward(c.funcs) {
		f()
	}
}
