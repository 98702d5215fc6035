package binpack

import "math"

// Item is one class of pods that want room.
type Item struct {
	Size    []int64
	Amounts []Amount // those of Size that are not zero: a size has a dimension for each term on hosts of any class, and a pod asks for few
	On      Bins     // the open bins that it may go on
	Count   int
	Prio    int32
	Fresh   bool // whether it may go on a fresh bin
}

// Amount is the size of an item in one dimension.
type Amount struct {
	Dimension int
	N         int64
}

// NewItem is an item of a size, without pods.
func NewItem(size []int64) Item {
	l := Item{Size: size}
	for j, n := range size {
		if n > 0 {
			l.Amounts = append(l.Amounts, Amount{j, n})
		}
	}
	return l
}

// MaxFit is how many more of an item fit into a room.
func (l *Item) MaxFit(room []int64) int {
	most := int64(math.MaxInt32)
	for _, x := range l.Amounts {
		if room[x.Dimension] < x.N {
			return 0
		}
		most = min(most, room[x.Dimension]/x.N)
	}
	return int(most)
}

// Fits tells whether one of an item fits into a room.
func (l *Item) Fits(room []int64) bool { return l.lacks(room) < 0 }

// lacks is the first dimension in which a room has too little for one of an item; -1: none.
func (l *Item) lacks(room []int64) int {
	for _, x := range l.Amounts {
		if room[x.Dimension] < x.N {
			return x.Dimension
		}
	}
	return -1
}

// Take takes n of an item out of a room; a negative n gives them back.
func (l *Item) Take(room []int64, n int) {
	for _, x := range l.Amounts {
		room[x.Dimension] -= x.N * int64(n)
	}
}
