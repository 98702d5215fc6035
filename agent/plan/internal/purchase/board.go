package purchase

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/schedsim"
)

// board is the cluster of a round: the nodes, then the upcoming machines, then the machines of a purchase that is tried. Nothing else
// holds room, or pods by domain.
type board struct {
	*Buyer
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

	groups  []int     // those that may be bought, one of each kind
	sets    [][]int   // by group: the balanced set that it stands for; nil: itself alone
	zones   []int     // by group: the number of the zone that its machines are in; nil: no pods are spread over zones
	domains []int     // by group: the number of what its machines have of the labels that waiting pods' terms on other pods name
	units   []float64 // by class, the price of the share of a machine that a pod takes at least; 0: no machine takes one

	stuck      []int // by class: pods that no purchase has helped yet
	moreHelped bool  // a trial has helped some of them
	limit      int   // of sim.Steps, for the part of the search that is at work
	large      bool  // pods are placed by counts
	tree       *tree // of all places, where pods are placed by counts; nil: it is to be made anew
	cut        bool  // the budget of the round has ended the search
}

// newBoard sets up the cluster and places what needs no purchase: kube-scheduler does not wait for machines where nodes have room; then
// the upcoming machines join, and pods go on the machine that was bought for them, the others where they have room. It ends when so many steps are spent.
func newBoard(p *Buyer, cost []float64, w way, steps int, large bool) *board {
	b := &board{Buyer: p, cost: cost, reaches: map[int][]int8{}, large: large}
	b.addNodes(w.withMarked)
	b.sim.Limit = steps
	n := len(b.Snapshot.Classes)
	b.placed, b.left, b.pieces, b.stuck, b.units = make([]int, n), make([]int, n), make([]int, n), make([]int, n), make([]float64, n)
	for i := range b.Demands {
		switch k := &b.Demands[i]; {
		case !k.Buys: // they get room on nodes at most
			b.place(k.Class, k.Count())
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
		b.placeContents(contentsOf(b.State))
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
	cfg := schedsim.Config{Classes: b.Snapshot.Classes, Namespaces: b.Snapshot.Namespaces, Dimensions: b.Dimensions, State: b.Constraints, Replicated: make([]bool, len(b.Snapshot.Classes))}
	seen := make([]bool, len(b.Snapshot.Classes))
	for i := range b.Demands { // sorted by priority and size
		if c := b.Demands[i].Class; !seen[c] {
			seen[c] = true
			b.order = append(b.order, c)
		}
	}
	if !b.large { // else no scores are asked for that look at other pods
		cfg.Binds = slices.Sorted(slices.Values(b.order))
	}
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
		if !b.isOpen(n, withMarked) {
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
	at := b.sim.AddNode(schedsim.Node{Info: b.infos[g], Allocatable: gr.Template.Allocatable, Room: b.rooms[g], VolumeLimits: gr.Template.VolumeLimits})
	if b.tree != nil {
		b.tree.set(at, b.sim.Room(at))
	}
	return at
}

// mark is a moment to which rollback returns.
type mark struct {
	sim      schedsim.Mark
	machines int
}

func (b *board) mark() mark { return mark{b.sim.Mark(), len(b.machines)} }

func (b *board) rollback(m mark) {
	b.sim.Rollback(m.sim)
	b.machines, b.tree = b.machines[:m.machines], nil
}

// placeWaiting binds the pods that are left, in the order of the queue of a draw.
func (b *board) placeWaiting(draw int) {
	b.sortQueue(draw)
	b.sim.Seed(uint64(draw) + 1)
	for _, r := range b.runs() {
		k := b.place(r.class, r.n)
		b.left[r.class] -= k
		b.placed[r.class] += k
	}
}

// place puts up to n pods of a class on any places, and returns how many: as kube-scheduler binds them, or where pods are placed by counts as many as each place
// takes, on the first places that take any. Pods that depend on others are bound there too: where they go opens and closes places.
func (b *board) place(class, n int) (done int) {
	if n == 0 {
		return 0
	}
	if !b.large || b.Constrained(class) && n*fewPods > b.sim.Nodes() {
		m := b.sim.Mark()
		done = b.sim.Bind(class, n)
		if b.large {
			b.sim.Forget(class)
			for _, p := range b.sim.Placed(m) {
				b.placedOn(p.Node)
			}
		}
		return done
	}
	if b.tree == nil {
		b.tree = newTree(b.sim.Nodes(), b.sim.Room)
	}
	size, filters := b.Dimensions.Class(class), b.FiltersOf(class)
	for again := true; again && done < n && !b.sim.Spent(); {
		again = false
		looks := 0
		for at := filters.Next(0); done < n; at = filters.Next(at + 1) {
			if at = b.tree.next(at, size); at < 0 {
				break
			}
			looks++
			k := b.fill(class, at, n-done)
			done += k
			again = again || k > 0 && b.Constrained(class)
		}
		b.sim.Steps += 1 + looks/looksPerStep
	}
	return done
}

// looksPerStep is how many places are looked at for what a step of binding costs.
const looksPerStep = 4

// placedOn says that a place has less room.
func (b *board) placedOn(at int) {
	if b.tree != nil {
		b.tree.set(at, b.sim.Room(at))
	}
}

// fillPlaces puts up to n pods of a class on the first places, or the last ones, that let them on, whatever these score, and returns how
// many; pods that are spread over hosts evenly. It costs the places, for constrained pods several times.
func (b *board) fillPlaces(class, n int, lastFirst bool) (done int) {
	evenly, filters := b.evenly(class), b.FiltersOf(class)
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
			if at < len(b.Nodes) && !filters.May(at) {
				continue
			}
			if k := b.fill(class, at, most); k > 0 {
				done, again = done+k, b.Constrained(class)
			}
		}
	}
	return done
}

const hostname = "kubernetes.io/hostname"

// evenly tells whether the pods of a class are spread over hosts, excludes whether they keep others off their host.
func (b *board) evenly(class int) bool {
	return slices.ContainsFunc(b.Snapshot.Classes[class].Spread, func(x cluster.Spread) bool { return x.TopologyKey == hostname })
}

func (b *board) excludes(class int) bool {
	return slices.ContainsFunc(b.Snapshot.Classes[class].PodAntiAffinity, func(x cluster.PodTerm) bool { return x.TopologyKey == hostname })
}

// fill puts up to n pods of a class on a place, as many as the filters let on, and returns how many.
func (b *board) fill(class, at, n int) int {
	n = min(n, binpack.MaxFit(b.sim.Room(at), b.Dimensions.Class(class)))
	if n <= 0 || !b.passes(class, at) {
		return 0
	}
	n = b.sim.Fill(class, at, n)
	b.placedOn(at)
	return n
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
	return b.rooms[g] != nil && b.takesOn(class, g, b.rooms[g], b.infos[g]) && b.reachesVolumes(class, g)
}

// reachesVolumes tells whether a machine of a group reaches the volumes of a class and has the devices of its claims. Each pair is asked once.
func (b *board) reachesVolumes(class, g int) bool {
	if c := &b.Snapshot.Classes[class]; !b.Constrained(class) || len(c.Volumes)+len(c.Claims) == 0 {
		return true
	}
	if b.reaches[class] == nil {
		b.reaches[class] = make([]int8, len(b.Groups))
	}
	known := &b.reaches[class][g]
	if *known == 0 {
		state := b.Constraints
		m := state.Mark()
		*known = -1
		if state.PassesVolumes(class, state.AddNode(b.infos[g], b.Groups[g].Template.VolumeLimits), nil) {
			*known = 1
		}
		state.Rollback(m)
	}
	return *known > 0
}
