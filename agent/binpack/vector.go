package binpack

import (
	"iter"
	"math"
	"slices"
)

// MaxFit is how many more items of a size fit into a room. Only the dimensions that an
// item asks for count, also where the room is overcommitted in another one.
func MaxFit(room, size []int64) int {
	most := int64(math.MaxInt32)
	for i, n := range size {
		if n > 0 {
			if room[i] < n {
				return 0
			}
			most = min(most, room[i]/n)
		}
	}
	return int(most)
}

// Axis is a dimension that an item asks for.
type Axis struct {
	Dimension int
	Amount    int64
}

// AxesOf are the dimensions that a size asks for. A size has a dimension for each term on hosts of any class, and a pod
// asks for few of them.
func AxesOf(size []int64) []Axis {
	axes := make([]Axis, 0, 8)
	for j, n := range size {
		if n > 0 {
			axes = append(axes, Axis{j, n})
		}
	}
	return axes
}

// Asked yields the dimensions that an item asks for.
func (l *Item) Asked() iter.Seq[Axis] {
	if l.Axes != nil {
		return slices.Values(l.Axes)
	}
	return func(yield func(Axis) bool) {
		for j, n := range l.Size {
			if n > 0 && !yield(Axis{j, n}) {
				return
			}
		}
	}
}

// MaxFit is how many more of an item fit into a room.
func (l *Item) MaxFit(room []int64) int {
	if l.Axes == nil {
		return MaxFit(room, l.Size)
	}
	most := int64(math.MaxInt32)
	for _, x := range l.Axes {
		if room[x.Dimension] < x.Amount {
			return 0
		}
		most = min(most, room[x.Dimension]/x.Amount)
	}
	return int(most)
}

// Fits tells whether one of an item fits into a room.
func (l *Item) Fits(room []int64) bool { return l.lacks(room) < 0 }

// lacks is the first dimension in which a room has too little for one of an item; -1: none.
func (l *Item) lacks(room []int64) int {
	if l.Axes == nil {
		for j, n := range l.Size {
			if n > 0 && room[j] < n {
				return j
			}
		}
		return -1
	}
	for _, x := range l.Axes {
		if room[x.Dimension] < x.Amount {
			return x.Dimension
		}
	}
	return -1
}

// Take takes n of an item out of a room; a negative n gives them back.
func (l *Item) Take(room []int64, n int) {
	if l.Axes == nil {
		Sub(room, l.Size, n)
		return
	}
	for _, x := range l.Axes {
		room[x.Dimension] -= x.Amount * int64(n)
	}
}

// Fits tells whether a pod of a size fits into a room: whether MaxFit is not zero.
func Fits(room, size []int64) bool {
	for i, n := range size {
		if n > 0 && room[i] < n {
			return false
		}
	}
	return true
}

// Sub takes n pods of a size out of a room; a negative n gives them back.
func Sub(room, size []int64, n int) {
	for i, v := range size {
		room[i] -= v * int64(n)
	}
}
