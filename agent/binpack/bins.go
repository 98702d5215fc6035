package binpack

import "math/bits"

// Bins is a set of open bins, by their numbers; nil: none.
type Bins []uint64

// Add adds a bin.
func (s *Bins) Add(b int) {
	for len(*s) <= b/64 {
		*s = append(*s, 0)
	}
	(*s)[b/64] |= 1 << (b % 64)
}

// AddAll adds the bins of another set.
func (s *Bins) AddAll(other Bins) {
	for len(*s) < len(other) {
		*s = append(*s, 0)
	}
	for w, word := range other {
		(*s)[w] |= word
	}
}

// Next is the first bin of the set from one on; -1: there is none.
func (s Bins) Next(from int) int {
	for w := from / 64; w < len(s); w++ {
		word := s[w]
		if w == from/64 {
			word &= ^uint64(0) << (from % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}
