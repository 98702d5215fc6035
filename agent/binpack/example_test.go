package binpack_test

import (
	"fmt"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
)

// Three large and four small items go into as few bins of ten by ten as possible.
func Example() {
	k := binpack.Pack(&binpack.Problem{
		Items: []binpack.Item{
			{Size: []int64{6, 6}, Count: 3, Fresh: true},
			{Size: []int64{2, 2}, Count: 4, Fresh: true},
		},
		Empty: []int64{10, 10},
		Limit: 5,
	})
	fmt.Println(k.Bins, "bins,", k.Unplaced(), "items left")
	// Output: 3 bins, 0 items left
}
