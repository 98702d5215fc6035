// Package classcount counts the pods of nodes by class. Small and apart: its counters know no type
// of the round. It refuses to know what a pod is.
package classcount

import "slices"

// Count is a class, and how many of its pods were counted.
type Count struct{ Class, N int32 }

// Counter counts pods by class. Its memory lives across rounds.
type Counter struct {
	counts []int32 // by class: one more than was counted; 0: the class was not named
	named  []int32
	free   []Count // room for answers
}

func (c *Counter) Add(class, n int) {
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
func (c *Counter) Take(order func(a, b int32) int) []Count {
	if order != nil {
		slices.SortStableFunc(c.named, order)
	}
	n := len(c.named)
	if n > len(c.free) {
		c.free = make([]Count, max(n, countsAtOnce))
	}
	out := c.free[:n:n]
	c.free = c.free[n:]
	for i, class := range c.named {
		out[i] = Count{class, c.counts[class] - 1}
		c.counts[class] = 0
	}
	c.named = c.named[:0]
	return out
}

// countsAtOnce is for how many counts room is made at once.
const countsAtOnce = 1024
