package round

import "slices"

// ClassCount is a class, and how many of its pods were counted: of a node, those that take room there.
type ClassCount struct{ Class, N int32 }

// classCounter counts pods by class. Its memory lives across rounds.
type classCounter struct {
	counts []int32 // by class: one more than was counted; 0: the class was not named
	named  []int32
	free   []ClassCount // room for answers
}

func (c *classCounter) Add(class, n int) {
	if class >= len(c.counts) {
		c.counts = append(c.counts, make([]int32, class+1-len(c.counts))...)
	}
	if c.counts[class] == 0 {
		c.counts[class] = 1
		c.named = append(c.named, int32(class))
	}
	c.counts[class] += int32(n)
}

// Take returns the counts in the order in which the classes were named, or, where
// order says something, in that order, and starts anew.
func (c *classCounter) Take(order func(a, b int32) int) []ClassCount {
	if order != nil {
		slices.SortStableFunc(c.named, order)
	}
	n := len(c.named)
	if n > len(c.free) {
		c.free = make([]ClassCount, max(n, classCountsAtOnce))
	}
	out := c.free[:n:n]
	c.free = c.free[n:]
	for i, class := range c.named {
		out[i] = ClassCount{class, c.counts[class] - 1}
		c.counts[class] = 0
	}
	c.named = c.named[:0]
	return out
}

// classCountsAtOnce is for how many counts room is made at once.
const classCountsAtOnce = 1024
