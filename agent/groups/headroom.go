package groups

import (
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Headroom is one entry of the list headroom: the room, and when it is kept. No
// schedule is always.
type Headroom struct {
	cluster.Headroom
	Schedules []Schedule
}

// How an amount of cpu and memory is cut into pieces: small enough to find room beside
// other pods, and not more of them than a round should pack.
const (
	pieceCPU    = 1000    // thousandths
	pieceMemory = 4 << 30 // bytes
	mostPieces  = 500
)

// cut turns a total into equal pieces.
func cut(total cluster.Resources) (piece cluster.Resources, count int) {
	n := max(ceil(total.MilliCPU, pieceCPU), ceil(total.Memory, pieceMemory), 1)
	n = min(n, mostPieces)
	return cluster.Resources{MilliCPU: ceil(total.MilliCPU, n), Memory: ceil(total.Memory, n)}, int(n)
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

// HeadroomAt is the file's headroom with its windows worked out around now.
func (f *File) HeadroomAt(now time.Time) []cluster.Headroom {
	out := make([]cluster.Headroom, 0, len(f.Headroom))
	for _, h := range f.Headroom {
		r := h.Headroom
		r.Scheduled = len(h.Schedules) > 0
		for i := range h.Schedules {
			r.Windows = append(r.Windows, h.Schedules[i].windows(now)...)
		}
		slices.SortFunc(r.Windows, func(a, b cluster.Window) int { return a.From.Compare(b.From) })
		out = append(out, r)
	}
	return out
}
