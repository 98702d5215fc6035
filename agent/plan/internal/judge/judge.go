package judge

import (
	"maps"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/contents"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/schedsim"
)

// A purchase is judged as the cluster that it makes: kube-scheduler binds what it can on the
// nodes that are there, then all machines have joined, and it binds the rest pod by pod, in
// the order of its queue, by its scores (schedsim). A packing that is tighter than what the
// scheduler makes of it leaves pods behind, and they are a second purchase. So what is
// compared is the price of both.
const (
	// judgePods, judgePairs (classes by nodes, and by classes) and judgeGroups bound what is
	// judged. Beyond them a round is decided by packing alone.
	judgePods   = 6_000
	judgePairs  = 40_000
	judgeGroups = 64
	// judgeSteps are the steps that a round may spend on judging: so many, and so many times what
	// a trial of the first candidate takes, and never more than its budget (budget.Search).
	judgeSteps, judgeTimes = 25_000, 80
	// A draw is one outcome of what kube-scheduler decides by chance: of ties, and of the order of pods that were
	// made in the same second. The search tries each purchase in judgeDraws draws, and the best purchases in the end
	// in judgeConfirms draws.
	judgeDraws, judgeConfirms = 2, 6
)

// model is the cluster, with what is upcoming, in which a model of kube-scheduler binds all pods.
type model struct {
	w          *Judge
	sim        *schedsim.Sim
	waits      []queued
	queues     [judgeConfirms][]podRun // see queue
	onNodes    []int                   // by class, pods that wait and have room on a node that is there
	lacking    []int                   // by class, the others
	pods       int                     // of a queue
	cost       []float64
	groups     []int   // those that may be bought, one of each kind
	balanced   [][]int // by group: the set that it stands for, whose groups share its machines; nil: it stands for itself alone
	withMarked bool    // nodes that are being emptied are there for pods
	infos      []*fit.NodeInfo
	rooms      [][]int64
	order      []int         // classes by falling size
	units      []float64     // by class, the price of the share of a machine that a pod takes; 0: no machine takes one
	upcoming   []int         // groups of the machines that are upcoming; they follow the nodes
	expected   []int         // by node, the group where pods may count on it that the scheduler has not bound: it is upcoming, or has just become Ready; -1: they may not
	reserved   map[int][]int // by class and group, pods that count on such machines
	nodes      int           // of the round, with the upcoming machines; bought machines follow
	bought     []int         // groups of the machines that a trial has added
	zonesInUse []bool        // by domain, whether a node or an upcoming machine is there; nil: no pod is spread over several zones
	lost       int           // pods that no purchase has helped yet; -1: none was tried
	stuck      map[int]int   // the same by class
	limit      int           // steps of the part that is at work
	most       int           // steps that the round has left for all parts
	cut        bool          // the budget of the round has ended the search
	begin      mark
	joined     mark  // the upcoming machines have joined, and no pod is on one yet
	early      []int // by class, pods that had room on a node before these machines
}

// Judgeable tells whether this round's purchases can be judged: whether the agent knows for which pods
// upcoming machines were bought, and whether the model can be asked.
func (w *Judge) Judgeable() bool { return len(w.Next.OrphanedUpcoming) == 0 && w.Askable() }

// Askable tells whether the round is small enough for the model, and needs more than counting.
func (w *Judge) Askable() bool { return w.tooLarge == "" && len(w.Groups) > 0 && !w.byCount() }

// byCount tells whether the pods are of one class and depend on no other pod, and there is one group: kube-scheduler fills
// such machines to the same number, whatever it scores, and packing counts that.
func (w *Judge) byCount() bool {
	return len(w.Groups) == 1 && w.packer.Topology == nil && !slices.ContainsFunc(w.Demands, func(k round.Demand) bool { return k.Class != w.Demands[0].Class })
}

// Measure finds the number (pods, classes, nodes, groups) by which the round is too large to be judged. It costs C + N + G.
func (w *Judge) Measure() {
	pods, nodes := 0, len(w.Nodes)
	for i := range w.Demands {
		pods += w.Demands[i].Count()
	}
	for g := range w.Groups {
		nodes += w.Groups[g].Upcoming + w.Groups[g].Grow
	}
	w.tooLarge = exceedsJudging(pods, len(w.Demands), nodes, len(w.Groups))
	w.packer.ListPods = w.tooLarge == "" // the next round can judge contents
}

// newModel builds the cluster as it is, binds what has room on its nodes, adds what is upcoming, puts the contents on it that
// are given, and binds what has room beside. It costs the nodes with their pods, what schedsim.New costs, and the pods.
// With letters: N + U, the pods that run, C*G, and Sim.Bind of P, twice where machines are upcoming.
func (w *Judge) newModel(cost []float64, withMarked bool, placed []contents.Content) *model {
	j := &model{w: w, cost: cost, lost: -1, withMarked: withMarked, most: max(w.Budget-w.Steps, min(judgeSteps, w.Budget))}
	j.buildCluster()
	j.sim.Limit = w.Budget // until a purchase has been bound once; a round that cannot do that is packed
	j.begin = j.mark()
	for i := range w.Demands { // pods for which nothing is bought: they get room on nodes at most
		if k := &w.Demands[i]; !k.Buys {
			j.sim.Bind(k.Class, k.Count())
		}
	}
	j.collectWaiting()
	j.bindWaiting() // kube-scheduler does not wait for machines where nodes have room
	j.rooms, j.infos = make([][]int64, len(w.Groups)), make([]*fit.NodeInfo, len(w.Groups))
	for g := range w.Groups {
		gr := &w.Groups[g]
		if gr.Template.Unknown != "" {
			continue
		}
		j.rooms[g], j.infos[g] = w.Template(gr)
		for range gr.Upcoming + gr.Grow {
			j.add(g)
			j.upcoming = append(j.upcoming, g)
		}
	}
	j.collectGroups()
	j.collectZones()
	j.nodes, j.bought = j.sim.Nodes(), nil
	j.weighClasses()
	j.collectReserved()
	j.joined, j.early = j.mark(), slices.Clone(j.onNodes)
	j.placeContents(placed)
	if len(j.upcoming) > 0 {
		j.bindWaiting()
	}
	for _, n := range j.lacking {
		j.pods += n
	}
	return j
}

// collectGroups finds the groups that may be bought. One group stands for all of a set that is
// balanced, and one for those that sell the same.
func (j *model) collectGroups() {
	w := j.w
	j.balanced = make([][]int, len(w.Groups))
	v, ranks := w.packer.NewSolver(false), w.packer.MachineRanks()
	for g := range w.Groups {
		if j.rooms[g] == nil || !w.Groups[g].CanGrow() || slices.ContainsFunc(j.groups, func(o int) bool { return slices.Contains(j.balanced[o], g) }) {
			continue
		}
		if k := slices.IndexFunc(j.groups, func(o int) bool { return j.alike(g, o) }); k >= 0 {
			if o := j.groups[k]; ranks[g] < ranks[o] && j.alike(o, g) && j.balanced[o] == nil && len(v.Partners(g)) == 1 {
				j.groups[k] = g // the expanders after the first one like it better
			}
			continue
		}
		if set := v.Partners(g); len(set) > 1 {
			j.balanced[g] = set
			j.rooms[g] = v.Smallest(set)
		}
		j.groups = append(j.groups, g)
	}
}

// spread is a purchase with the machines of each balanced set given to its groups, each to the
// group that is smallest then; false: the maxima do not allow it. It costs the groups.
func (j *model) spread(x []int) ([]int, bool) {
	for g, set := range j.balanced {
		if set != nil && x[g] > 0 {
			x = slices.Clone(x)
			n := x[g]
			x[g] = 0
			if !growth.Share(j.w.State, x, set, n) {
				return x, false
			}
		}
	}
	return x, true
}

// gathered is a purchase with the machines of each balanced set counted for the group that
// stands for it.
func (j *model) gathered(x []int) []int {
	out := slices.Clone(x)
	for g, set := range j.balanced {
		for _, o := range set {
			if o != g {
				out[g], out[o] = out[g]+out[o], 0
			}
		}
	}
	return out
}

// buildCluster tells the model of the nodes and of what is on them.
func (j *model) buildCluster() {
	w := j.w
	cfg := schedsim.Config{Classes: w.Snapshot.Classes, Namespaces: w.Snapshot.Namespaces, Dimensions: w.Dimensions, Replicated: make([]bool, len(w.Snapshot.Classes))}
	if w.packer.Topology != nil {
		cfg.State = w.packer.Topology.State
	}
	listed := make([]bool, len(w.Snapshot.Classes))
	for i := range w.Demands {
		if c := w.Demands[i].Class; !listed[c] {
			listed[c] = true
			j.order = append(j.order, c)
		}
	}
	cfg.Binds = slices.Sorted(slices.Values(j.order))
	for _, x := range w.Unbound.Waiting {
		if o := w.Snapshot.Pods[x.Pod].Owner; o != nil && (o.Kind == "ReplicaSet" || o.Kind == "StatefulSet" || o.Kind == "ReplicationController") {
			cfg.Replicated[x.Class] = true
		}
	}
	j.sim = schedsim.New(cfg)
	none := make([]int64, w.Dimensions.Len())
	for i := range w.Nodes {
		n := &w.Nodes[i]
		room, shape := n.Room, &n.Shape
		if n.State == round.StateMarked {
			open := w.OpenShape(n)
			shape = &open
		}
		if !w.packer.IsOpen(n, j.withMarked) {
			room = none
		}
		j.sim.AddNode(schedsim.Node{Info: shape, Allocatable: n.Allocatable, Room: room, Known: true, InState: i})
		j.putPods(i, n)
	}
	// Of equal sizes the order of the demands stands, whatever the numbers of the classes.
	slices.SortStableFunc(j.order, func(a, b int) int { return slices.Compare(w.Dimensions.Class(b), w.Dimensions.Class(a)) })
}

// putPods tells the model which pods are on a node: by class, or one by one where some are terminating or take no room.
func (j *model) putPods(i int, n *round.Node) {
	if f := n.Facts; !f.Timed && !f.Expendable {
		for _, h := range f.Classes {
			j.sim.Put(int(h.Class), i, int(h.N), false)
		}
		return
	}
	for k := range n.Pods {
		if p := &n.Pods[k]; !p.Finished {
			j.sim.Put(p.OnNode(), i, 1, !p.Deleting.IsZero())
		}
	}
}

// alike tells whether two groups sell the same machine for the same price.
func (j *model) alike(a, b int) bool {
	return j.cost[a] == j.cost[b] && slices.Equal(j.rooms[a], j.rooms[b]) && j.w.Groups[b].Max-j.w.Groups[b].Size > 1000 &&
		maps.Equal(j.infos[a].Labels, j.infos[b].Labels) && slices.Equal(j.infos[a].Taints, j.infos[b].Taints) &&
		slices.Equal(j.w.Groups[a].Template.Zones, j.w.Groups[b].Template.Zones)
}

// weighClasses finds out what the share of a machine costs that a pod of each class takes at
// least. It costs the classes by the groups.
func (j *model) weighClasses() {
	j.units = make([]float64, len(j.w.Snapshot.Classes))
	for _, c := range j.order {
		size := j.w.Dimensions.Class(c)
		for _, g := range j.groups {
			if !j.takes(c, g) {
				continue
			}
			if unit := share(size, j.rooms[g]) * j.cost[g]; j.units[c] == 0 || unit < j.units[c] {
				j.units[c] = unit
			}
		}
	}
}

// takes tells whether an empty machine of a group takes a pod of a class, with no other pods around. A constraint in a
// domain that the template does not name refuses it; anti-affinity to pods that nobody has is none.
func (j *model) takes(class, g int) bool {
	return j.rooms[g] != nil && binpack.Fits(j.rooms[g], j.w.Dimensions.Class(class)) && j.w.Takes(class, g, j.infos[g]) && j.w.packer.Topology.UnknownDomain(class, j.infos[g]) == ""
}

// share is the largest part of a room, of any dimension, that a size takes.
func share(size, room []int64) (most float64) {
	for k, n := range size {
		if n > 0 {
			most = max(most, float64(n)/float64(max(room[k], 1)))
		}
	}
	return most
}

// collectReserved counts the pods that an earlier round counted on machines that are upcoming,
// or that have just become Ready: there it is the scheduler's turn.
// It costs G*P in the worst case, and U.
func (j *model) collectReserved() {
	w := j.w
	if !w.HasReservations() {
		return
	}
	j.expected = make([]int, j.nodes)
	some := make([]bool, len(w.Groups))
	for i := range j.expected {
		j.expected[i] = -1
		switch {
		case i >= len(w.Nodes):
			j.expected[i] = j.upcoming[i-len(w.Nodes)]
		case w.Nodes[i].State == round.StateUpcoming:
			j.expected[i] = w.Nodes[i].Group
		}
	}
	for _, i := range w.JustReady() {
		j.expected[i] = w.Nodes[i].Group
	}
	for _, g := range j.expected {
		if g >= 0 {
			some[g] = true
		}
	}
	v := w.packer.NewSolver(false)
	j.reserved = make(map[int][]int)
	for i := range w.Demands {
		k := &w.Demands[i]
		for g := range w.Groups {
			if !some[g] || j.rooms[g] == nil || !j.takes(k.Class, g) || j.excluded(k.Class, g) {
				continue
			}
			if n := v.Reserved(i, g); n > 0 {
				if j.reserved[k.Class] == nil {
					j.reserved[k.Class] = make([]int, len(w.Groups))
				}
				j.reserved[k.Class][g] += n
			}
		}
	}
}

// excluded tells whether pods that run keep a class away from all expected machines of a group. Pods that are still to
// be bound on machines that are upcoming may change that for a class with affinity or spread. It costs the nodes.
func (j *model) excluded(class, g int) bool {
	if !j.constrained(class) {
		return false
	}
	c, upcoming := &j.w.Snapshot.Classes[class], false
	for i, o := range j.expected {
		if o == g && j.sim.CanBind(class, i) {
			return false
		}
		upcoming = upcoming || i >= len(j.w.Nodes) || j.w.Nodes[i].State == round.StateUpcoming
	}
	return !upcoming || len(c.PodAffinity)+len(c.Spread) == 0
}

// price is the sum of the costs of the machines of a purchase.
func (j *model) price(x []int) (sum float64) {
	for g, n := range x {
		sum += float64(n) * j.cost[g]
	}
	return sum
}

func (j *model) add(g int) int {
	gr := &j.w.Groups[g]
	j.bought = append(j.bought, g)
	return j.sim.AddNode(schedsim.Node{Info: j.infos[g], Allocatable: gr.Template.Allocatable, Room: j.rooms[g], VolumeLimits: gr.Template.VolumeLimits})
}
