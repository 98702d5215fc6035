package binpack

import (
	"math"
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
