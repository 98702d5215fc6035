package exchange

import "fmt"

// Two machines of the small group cost as much as one of the large group.
func ExampleEqual() {
	cost, groups, machines := []float64{0.1, 0.2}, []int{0, 1}, []int{4, 0}
	for _, e := range Equal(cost, groups, machines) {
		if y, possible := e.Of(machines); possible {
			fmt.Println(y)
		}
	}
	// Output:
	// [0 2]
	// [2 1]
}
