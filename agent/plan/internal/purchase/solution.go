package purchase

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/schedsim"
)

// Portion is how many pods of a demand are on a machine.
type Portion struct{ Demand, N int }

// Bin is a node or a machine with the pods of this round.
type Bin struct {
	Node     int // index into State.Nodes, -1: a machine of group
	Group    int
	Room     []int64 // what is left
	Used     bool
	Fresh    bool                   // it is a machine that is bought
	Portions []Portion              // the pods on it
	Headroom []round.HeadroomPieces // headroom that is kept free here
}

// Taken tells whether pods or headroom count on a bin.
func (b *Bin) Taken() bool { return b.Used || b.Headroom != nil }

// Allocation counts the pods of one demand that go on the upcoming and the new machines of one group.
type Allocation struct{ Group, Upcoming, New int }

// Solution says where all wanted pods would go.
type Solution struct {
	Bins        []Bin          // the nodes that pods go on, and the machines that are upcoming or bought
	Grow        []int          // new machines by group
	On          []int          // by demand: pods on nodes that are Ready
	Allocations [][]Allocation // by demand, in the order of the groups
	Left        []int          // by demand: pods that no group can help
	Reasons     []string       // by group: what kube-scheduler has to do with its machines (see reasons)
}

// Bought is how many machines are bought.
func (a *Solution) Bought() int { return sum(a.Grow) }

// Unplaced is how many pods no group can help.
func (a *Solution) Unplaced() int { return sum(a.Left) }

// needsLess tells whether a solution buys less than another and helps no fewer pods, or helps more pods and buys no more.
func (a *Solution) needsLess(than *Solution) bool {
	return a.Unplaced() <= than.Unplaced() && a.Bought() < than.Bought() || a.Unplaced() < than.Unplaced() && a.Bought() <= than.Bought()
}

// written is the solution with a purchase whose pods are on the board. Of the machines, those from before on are bought.
func (b *board) written(before int) *Solution {
	n := len(b.Demands)
	s := &Solution{Grow: b.none(), On: make([]int, n), Left: make([]int, n), Allocations: make([][]Allocation, n)}
	demands := make([][]int, len(b.Snapshot.Classes)) // those first for which machines are bought
	for _, buys := range []bool{true, false} {
		for i := range b.Demands {
			if k := &b.Demands[i]; k.Buys == buys {
				demands[k.Class] = append(demands[k.Class], i)
				s.Left[i] = k.Count()
			}
		}
	}
	placed := b.sim.Placed(schedsim.Mark{})
	at := make([]int, b.sim.Nodes()) // by place, one more than its bin
	for _, p := range placed {
		at[p.Node] = 1
	}
	for i := range at {
		switch k := i - len(b.Nodes); {
		case k >= 0:
			s.Bins = append(s.Bins, Bin{Node: -1, Group: b.machines[k], Room: slices.Clone(b.rooms[b.machines[k]]), Used: true, Fresh: k >= before})
			if k >= before {
				s.Grow[b.machines[k]]++
			}
		case at[i] > 0:
			s.Bins = append(s.Bins, Bin{Node: i, Group: b.Nodes[i].Group, Room: slices.Clone(b.Nodes[i].Room)})
		}
		at[i] = len(s.Bins)
	}
	for _, p := range placed {
		bin, count := &s.Bins[at[p.Node]-1], p.Count
		for _, i := range demands[p.Class] {
			if n := min(count, s.Left[i]); n > 0 && (b.Demands[i].Buys || !bin.Fresh) {
				count -= n
				b.write(s, bin, i, n)
			}
		}
	}
	return s
}

// write puts n pods of a demand on a bin.
func (b *board) write(s *Solution, bin *Bin, i, n int) {
	k := &b.Demands[i]
	if k.Headroom == "" {
		bin.Used = true
	} else {
		bin.Headroom = append(bin.Headroom, round.HeadroomPieces{Class: k.Class, Count: n})
	}
	binpack.Sub(bin.Room, b.Dimensions.Class(k.Class), n)
	bin.Portions = append(bin.Portions, Portion{i, n})
	s.Left[i] -= n
	if bin.Node >= 0 && b.Nodes[bin.Node].State != round.StateUpcoming {
		s.On[i] += n
		return
	}
	all := s.Allocations[i]
	at, has := slices.BinarySearchFunc(all, bin.Group, func(a Allocation, g int) int { return cmp.Compare(a.Group, g) })
	if !has {
		all = slices.Insert(all, at, Allocation{Group: bin.Group})
		s.Allocations[i] = all
	}
	if bin.Fresh {
		all[at].New += n
	} else {
		all[at].Upcoming += n
	}
}
