package ctxpool_test

import (
	"fmt"

	"pinion/ctxpool"
)

func ExamplePool() {
	type scratch struct{ ids []int64 }
	p := ctxpool.NewPool(0, nil, func(s *scratch) { s.ids = s.ids[:0] })

	const loop = 3 // the number of the loop that runs this request
	s := p.Get(loop)
	s.ids = append(s.ids, 1, 2, 3)
	fmt.Println(len(s.ids))
	p.Put(loop, s) // s is not ours from here on

	// Output: 3
}
