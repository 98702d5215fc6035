package mixed_test

import (
	"fmt"
	"math"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack/mixed"
)

// Five items need a large bin for four of them and a small one for the fifth.
func Example() {
	p := mixed.Problem{
		MachineTypes: []mixed.MachineType{
			{Cost: 1, Limit: 9, Empty: []int64{2, 2, 0, 9}, May: []bool{true}},
			{Cost: 3, Limit: 9, Empty: []int64{8, 8, 0, 9}, May: []bool{true}},
		},
		Sizes: [][]int64{{2, 2, 0, 1}},
		Count: []int{5},
		Most:  mixed.Steps,
		Cost:  math.Inf(1),
	}
	best, _ := p.Run()
	for _, b := range best {
		fmt.Printf("%d bins that cost %g with %d items\n", b.Times, p.MachineTypes[b.MachineType].Cost, b.Content[0])
	}
	// Output:
	// 1 bins that cost 1 with 1 items
	// 1 bins that cost 3 with 4 items
}
