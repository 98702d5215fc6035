package binpack_test

import (
	"fmt"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
)

// Three large and four small items go into as few bins of ten by ten as possible.
func Example() {
	large, small := binpack.NewItem([]int64{6, 6}), binpack.NewItem([]int64{2, 2})
	large.Count, large.Fresh = 3, true
	small.Count, small.Fresh = 4, true
	k := binpack.Pack(&binpack.Problem{
		Items: []binpack.Item{large, small},
		Empty: []int64{10, 10},
		Limit: 5,
	})
	fmt.Println(k.Bins, "bins,", k.Unplaced(), "items left")
	// Output: 3 bins, 0 items left
}
