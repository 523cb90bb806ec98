package affinity_test

import (
	"fmt"

	"pinion/affinity"
)

func ExampleParseSet() {
	cpus, err := affinity.ParseSet("0-3,8-15:2/4")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cpus, cpus.Len())
	// Output: 0-3,8-9,12-13 8
}

// A main function pins itself before anything else.
func Example() {
	main := func(list string) error {
		cpus, err := affinity.ParseSet(list)
		if err != nil {
			return err
		}
		if err := affinity.Reexec(affinity.Placement{CPUs: cpus}); err != nil {
			return err
		}
		decision, err := affinity.Apply(cpus, 1)
		if err != nil {
			fmt.Println("warning:", err)
		}
		fmt.Println(decision)
		return nil
	}
	fmt.Println(main("7-4"))
	// Output: CPU list: "7-4" at byte 0: the range is reversed
}
