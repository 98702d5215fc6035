package purchase

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/contents"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/packing"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/schedsim"
)

// board is the cluster of a round: the nodes, then the upcoming machines, then the machines of a purchase that is tried. Nothing else
// holds room, or pods by domain.
type board struct {
	*packing.Packer
	sim      *schedsim.Sim
	cost     []float64 // by group, of a machine
	rooms    [][]int64 // by group, of an empty machine; nil: not known
	infos    []*fit.NodeInfo
	machines []int // groups of the machines beyond the nodes

	order  []int // classes that wait, by priority and falling size
	waits  []queued
	queues [][]run // by draw, see queue
	placed []int   // by class: pods that have a place without a purchase
	left   []int   // by class: the others
	pods   int     // the sum of left
	pieces []int   // by class: pieces of headroom that have no place

	reaches map[int][]int8 // by class with volumes, then by group: 1 yes, -1 no, 0 not asked

	groups []int     // those that may be bought, one of each kind
	sets   [][]int   // by group: the balanced set that it stands for; nil: itself alone
	zones  []int     // by group: the number of the zone that its machines are in; nil: no pods are spread over zones
	units  []float64 // by class, the price of the share of a machine that a pod takes at least; 0: no machine takes one

	stuck      []int // by class: pods that no purchase has helped yet
	moreHelped bool  // a trial has helped some of them
	limit      int   // of sim.Steps, for the part of the search that is at work
	cut        bool  // the budget of the round has ended the search
}

// newBoard sets up the cluster and places what needs no purchase: kube-scheduler does not wait for machines where nodes have room; then
// the upcoming machines join, and pods go on the machine that was bought for them, the others where they have room. It ends when so many steps are spent.
func newBoard(p *packing.Packer, cost []float64, w way, steps int) *board {
	b := &board{Packer: p, cost: cost, reaches: map[int][]int8{}}
	b.addNodes(w.withMarked)
	b.sim.Limit = steps
	n := len(b.Snapshot.Classes)
	b.placed, b.left, b.pieces, b.stuck, b.units = make([]int, n), make([]int, n), make([]int, n), make([]int, n), make([]float64, n)
	for i := range b.Demands {
		switch k := &b.Demands[i]; {
		case !k.Buys: // they get room on nodes at most
			b.sim.Bind(k.Class, k.Count())
		default:
			*b.leftOf(k.Class) += k.Count()
		}
	}
	b.collectQueue()
	b.placeWaiting(0)
	b.rooms, b.infos = make([][]int64, len(b.Groups)), make([]*fit.NodeInfo, len(b.Groups))
	for g := range b.Groups {
		gr := &b.Groups[g]
		if gr.Template.Unknown != "" {
			continue
		}
		b.rooms[g], b.infos[g] = b.Template(gr)
		for range gr.Upcoming + gr.Grow {
			b.add(g)
		}
	}
	if w.contents {
		b.placeContents(contents.Of(b.State))
	}
	if size := w.again - restartDraws; size > 0 {
		order := slices.Clone(b.order)
		if size%2 == 0 {
			slices.Reverse(order)
		}
		for c, n := range b.placeBySize(order, size > 2) {
			b.placed[c], b.left[c] = b.placed[c]+b.left[c]-n, n
		}
	} else {
		b.placeWaiting(w.again)
	}
	b.collectGroups()
	b.pods = sum(b.left)
	return b
}

// leftOf is how many pods of a class, or pieces of headroom, have no place.
func (b *board) leftOf(class int) *int {
	if b.HeadroomName(class) != "" {
		return &b.pieces[class]
	}
	return &b.left[class]
}

// addNodes puts the nodes on the board with what is on them.
func (b *board) addNodes(withMarked bool) {
	cfg := schedsim.Config{Classes: b.Snapshot.Classes, Namespaces: b.Snapshot.Namespaces, Dimensions: b.Dimensions, Replicated: make([]bool, len(b.Snapshot.Classes))}
	if b.Topology != nil {
		cfg.State = b.Topology.State
	}
	seen := make([]bool, len(b.Snapshot.Classes))
	for i := range b.Demands { // sorted by priority and size
		if c := b.Demands[i].Class; !seen[c] {
			seen[c] = true
			b.order = append(b.order, c)
		}
	}
	cfg.Binds = slices.Sorted(slices.Values(b.order))
	for _, x := range b.Unbound.Waiting {
		if o := b.Snapshot.Pods[x.Pod].Owner; o != nil && (o.Kind == "ReplicaSet" || o.Kind == "StatefulSet" || o.Kind == "ReplicationController") {
			cfg.Replicated[x.Class] = true
		}
	}
	b.sim = schedsim.New(cfg)
	none := make([]int64, b.Dimensions.Len())
	for i := range b.Nodes {
		n := &b.Nodes[i]
		room, shape := n.Room, &n.Shape
		if n.State == round.StateMarked {
			open := b.OpenShape(n)
			shape = &open
		}
		if !b.IsOpen(n, withMarked) {
			room = none
		}
		b.sim.AddNode(schedsim.Node{Info: shape, Allocatable: n.Allocatable, Room: room, Known: true, InState: i})
		b.putPods(i, n)
	}
}

// putPods tells the scores which pods are on a node: by class, or one by one where some are terminating or take no room.
func (b *board) putPods(i int, n *round.Node) {
	if f := n.Facts; !f.Timed && !f.Expendable {
		for _, h := range f.Classes {
			b.sim.Put(int(h.Class), i, int(h.N), false)
		}
		return
	}
	for k := range n.Pods {
		if p := &n.Pods[k]; !p.Finished {
			b.sim.Put(p.OnNode(), i, 1, !p.Deleting.IsZero())
		}
	}
}

// add puts an empty machine of a group on the board.
func (b *board) add(g int) int {
	gr := &b.Groups[g]
	b.machines = append(b.machines, g)
	return b.sim.AddNode(schedsim.Node{Info: b.infos[g], Allocatable: gr.Template.Allocatable, Room: b.rooms[g], VolumeLimits: gr.Template.VolumeLimits})
}

// mark is a moment to which rollback returns.
type mark struct {
	sim      schedsim.Mark
	machines int
}

func (b *board) mark() mark { return mark{b.sim.Mark(), len(b.machines)} }

func (b *board) rollback(m mark) {
	b.sim.Rollback(m.sim)
	b.machines = b.machines[:m.machines]
}

// placeWaiting binds the pods that are left, in the order of the queue of a draw.
func (b *board) placeWaiting(draw int) {
	b.sortQueue(draw)
	b.sim.Seed(uint64(draw) + 1)
	for _, r := range b.runs() {
		k := b.sim.Bind(r.class, r.n)
		b.left[r.class] -= k
		b.placed[r.class] += k
	}
}

// fillPlaces puts up to n pods of a class on the first places, or the last ones, that let them on, whatever these score, and returns how
// many; pods that are spread over hosts evenly. It costs the places, for constrained pods several times.
func (b *board) fillPlaces(class, n int, lastFirst bool) (done int) {
	evenly := slices.ContainsFunc(b.Snapshot.Classes[class].Spread, func(x cluster.Spread) bool { return x.TopologyKey == hostname })
	for again := true; again && done < n; {
		again = false
		for i := 0; i < b.sim.Nodes() && done < n; i++ {
			at, most := i, n-done
			if lastFirst {
				at = b.sim.Nodes() - 1 - i
			}
			if evenly {
				most = 1
			}
			if k := b.fill(class, at, most); k > 0 {
				done, again = done+k, b.constrained(class)
			}
		}
	}
	return done
}

const hostname = "kubernetes.io/hostname"

// fill puts up to n pods of a class on a place, as many as the filters let on, and returns how many.
func (b *board) fill(class, at, n int) int {
	n = min(n, binpack.MaxFit(b.sim.Room(at), b.Dimensions.Class(class)))
	if n <= 0 || !b.passes(class, at) {
		return 0
	}
	return b.sim.Fill(class, at, n)
}

// passes tells whether the shape of a place lets a class on.
func (b *board) passes(class, at int) bool {
	if at < len(b.Nodes) {
		return b.FiltersOf(class).Passes(at)
	}
	return b.takes(class, b.machines[at-len(b.Nodes)])
}

// takes tells whether an empty machine of a group takes a pod of a class, with no other pods around.
func (b *board) takes(class, g int) bool {
	return b.rooms[g] != nil && binpack.Fits(b.rooms[g], b.Dimensions.Class(class)) && b.Packer.Takes(class, g, b.infos[g]) && b.Topology.UnknownDomain(class, b.infos[g]) == "" &&
		b.reachesVolumes(class, g)
}

// reachesVolumes tells whether a machine of a group reaches the volumes of a class. Each pair is asked once.
func (b *board) reachesVolumes(class, g int) bool {
	if !b.constrained(class) || len(b.Snapshot.Classes[class].Volumes) == 0 {
		return true
	}
	if b.reaches[class] == nil {
		b.reaches[class] = make([]int8, len(b.Groups))
	}
	known := &b.reaches[class][g]
	if *known == 0 {
		state := b.Topology.State
		m := state.Mark()
		*known = -1
		if state.PassesVolumes(class, state.AddNode(b.infos[g], b.Groups[g].Template.VolumeLimits), nil) {
			*known = 1
		}
		state.Rollback(m)
	}
	return *known > 0
}

// constrained tells whether other pods or volumes can refuse a class, or the class others.
func (b *board) constrained(class int) bool {
	return b.Topology != nil && b.Topology.Constrained[class]
}
