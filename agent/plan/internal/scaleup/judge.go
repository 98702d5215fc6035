package scaleup

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/schedsim"
)

// A purchase is judged as the cluster that it makes: kube-scheduler binds what it can on the
// nodes that are there, then all machines have joined, and it binds the rest pod by pod, in
// the order of its queue, by its scores (schedsim). A packing that is tighter than what the
// scheduler makes of it leaves pods behind, and they would be a second purchase.
const (
	// judgePods, judgePairs (classes by nodes, and by classes) and judgeGroups bound what is
	// judged. Beyond them a round is decided by packing alone.
	judgePods   = 6_000
	judgePairs  = 40_000
	judgeGroups = 64
	// judgeSteps is what a round may spend on judging: so much, and so many times what
	// binding all pods once takes.
	judgeSteps, judgeTimes = 150_000, 20
	judgeMost              = 1_500_000
)

// judge holds purchases against a model of kube-scheduler.
type judge struct {
	w      *Planner
	sim    *schedsim.Sim
	queues [judgeDraws][]podRun
	cost   []float64
	groups []int // those that may be bought, one of each kind
	infos  []*fit.NodeInfo
	rooms  [][]int64
	order  []int // classes by falling size
	nodes  int   // of the round; the machines that are bought follow
	most   int   // steps of the round
	limit  int   // steps of the part that is at work
	accept int   // pods that no purchase helps
	begin  schedsim.Mark
}

// podRun are pods of one class that follow each other in the queue.
type podRun struct{ class, n int }

// judgeable tells whether this round's purchases can be judged: whether the model knows all
// that matters, and whether it is small enough.
func (w *Planner) judgeable() bool {
	if w.anyUpcoming() || len(w.Groups) == 0 || len(w.Groups) > judgeGroups {
		return false
	}
	pods, classes := 0, 0
	for i := range w.Demands {
		k := &w.Demands[i]
		if k.Headroom != "" || k.Expected > 0 || k.Deferral != "" {
			return false
		}
		pods += k.Count()
		classes++
	}
	for g := range w.Groups {
		if len(w.Peers(g)) > 1 {
			return false
		}
	}
	return pods <= judgePods && classes*(len(w.Nodes)+len(w.Groups)) <= judgePairs && classes*classes <= judgePairs
}

// newJudge builds the cluster as it is and binds what has room on it. It costs the nodes
// with their pods, what schedsim.New costs, and the pods.
func (w *Planner) newJudge(cost []float64) *judge {
	j := &judge{w: w, cost: cost, nodes: len(w.Nodes)}
	cfg := schedsim.Config{Classes: w.Snapshot.Classes, Namespaces: w.Snapshot.Namespaces, Dimensions: w.Dimensions, Replicated: make([]bool, len(w.Snapshot.Classes))}
	if w.topology != nil {
		cfg.State = w.topology.State
	}
	for i := range w.Demands {
		cfg.Binds = append(cfg.Binds, w.Demands[i].Class)
	}
	slices.Sort(cfg.Binds)
	cfg.Binds = slices.Compact(cfg.Binds)
	for _, x := range w.Unbound.Waiting {
		if o := w.Snapshot.Pods[x.Pod].Owner; o != nil && (o.Kind == "ReplicaSet" || o.Kind == "StatefulSet" || o.Kind == "ReplicationController") {
			cfg.Replicated[x.Class] = true
		}
	}
	j.sim = schedsim.New(cfg)
	none := make([]int64, w.Dimensions.Len())
	for i := range w.Nodes {
		n := &w.Nodes[i]
		room := n.Room
		if n.State != round.StateReady {
			room = none
		}
		j.sim.AddNode(schedsim.Node{Info: &n.Shape, Allocatable: n.Allocatable, Room: room, Known: true, InState: i})
		for k := range n.Pods {
			if p := &n.Pods[k]; !p.Finished {
				j.sim.Put(p.Class, i, 1, !p.Deleting.IsZero())
			}
		}
	}
	j.order = cfg.Binds
	slices.SortStableFunc(j.order, func(a, b int) int { return slices.Compare(w.Dimensions.Class(b), w.Dimensions.Class(a)) })
	j.infos, j.rooms = make([]*fit.NodeInfo, len(w.Groups)), make([][]int64, len(w.Groups))
	for g := range w.Groups {
		gr := &w.Groups[g]
		if gr.Template.Unknown != "" || !gr.CanGrow() {
			continue
		}
		j.rooms[g], j.infos[g] = w.Template(gr)
		if !slices.ContainsFunc(j.groups, func(o int) bool { return j.alike(g, o) }) {
			j.groups = append(j.groups, g)
		}
	}
	j.begin = j.sim.Mark()
	j.fillQueue()
	return j
}

// alike tells whether two groups sell the same machine for the same price.
func (j *judge) alike(a, b int) bool {
	return j.cost[a] == j.cost[b] && slices.Equal(j.rooms[a], j.rooms[b]) && j.w.Groups[b].Max-j.w.Groups[b].Size > 1000 &&
		maps.Equal(j.infos[a].Labels, j.infos[b].Labels) && slices.Equal(j.infos[a].Taints, j.infos[b].Taints)
}

// fillQueue puts the pods in the order in which kube-scheduler takes them: by priority, then
// by age. Those that have room on a node that is there go onto it; the others are the queue.
func (j *judge) fillQueue() {
	w := j.w
	left := make([]int, len(w.Snapshot.Classes))
	for i := range w.Demands {
		if k := &w.Demands[i]; k.Buys {
			left[k.Class] += k.Count()
		} else {
			j.sim.Bind(k.Class, k.Count())
		}
	}
	all := make([]queued, 0, len(w.Unbound.Waiting))
	for _, x := range w.Unbound.Waiting {
		if left[x.Class] > 0 {
			p := &w.Snapshot.Pods[x.Pod]
			all = append(all, queued{w.Snapshot.Classes[x.Class].Priority, p.Created, p.Key, hashOf(p.Key), int(x.Class)})
		}
	}
	there := slices.Clone(left)
	for d := range j.queues {
		slices.SortFunc(all, func(a, b queued) int {
			if c := cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.created, b.created)); c != 0 {
				return c
			}
			if d > 0 { // of the same second, in any order
				return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.key, b.key))
			}
			return cmp.Compare(a.key, b.key)
		})
		if d == 0 {
			for _, r := range runsOf(all, nil, left) {
				there[r.class] -= j.sim.Bind(r.class, r.n)
			}
		}
		bound := slices.Clone(left) // of each class those that come first
		for c := range bound {
			bound[c] -= there[c]
		}
		j.queues[d] = runsOf(all, bound, there)
	}
}

// queued is a pod on its place in kube-scheduler's queue.
type queued struct {
	priority int32
	created  cluster.Moment
	key      cluster.PodKey
	hash     uint64
	class    int
}

func hashOf(key cluster.PodKey) uint64 {
	h := fnv.New64a()
	h.Write([]byte(key))
	return h.Sum64()
}

// runsOf are the pods as runs of one class, of each class as many as are left after some.
func runsOf(all []queued, after, left []int) (out []podRun) {
	after, left = slices.Clone(after), slices.Clone(left)
	for i := range all {
		c := all[i].class
		if after != nil && after[c] > 0 {
			after[c]--
			continue
		}
		if left[c] == 0 {
			continue
		}
		left[c]--
		if k := len(out) - 1; k >= 0 && out[k].class == c {
			out[k].n++
		} else {
			out = append(out, podRun{c, 1})
		}
	}
	return out
}

// run makes the cluster of a purchase and binds all pods. It returns the pods that are left,
// by class, and how many; it stops once more than most are. The caller rolls back.
func (j *judge) run(x []int, draw, most int) (left map[int]int, total int) {
	j.sim.Seed(uint64(draw) + 1)
	for g, n := range x {
		for range n {
			j.add(g)
		}
	}
	for _, r := range j.queues[draw] {
		if n := r.n - j.sim.Bind(r.class, r.n); n > 0 {
			if left == nil {
				left = make(map[int]int)
			}
			left[r.class] += n
			if total += n; total > most {
				break
			}
		}
	}
	return left, total
}

func (j *judge) add(g int) int {
	gr := &j.w.Groups[g]
	return j.sim.AddNode(schedsim.Node{Info: j.infos[g], Allocatable: gr.Template.Allocatable, Room: j.rooms[g], VolumeLimits: gr.Template.VolumeLimits})
}

// leaves is how many pods a purchase leaves, at worst of a few draws; it stops once more than
// what nothing helps are left.
func (j *judge) leaves(x []int) (worst int) {
	for draw := range judgeDraws {
		m := j.sim.Mark()
		_, n := j.run(x, draw, j.accept)
		j.sim.Rollback(m)
		if worst = max(worst, n); worst > j.accept {
			return worst
		}
	}
	return worst
}

// judgeDraws is how many draws a purchase has to stand: of ties, and of the order of pods that
// were made in the same second.
const judgeDraws = 2

// price is what a purchase costs.
func (j *judge) price(x []int) (sum float64) {
	for g, n := range x {
		sum += float64(n) * j.cost[g]
	}
	return sum
}

// within tells whether the limits allow a purchase.
func (j *judge) within(x []int) bool {
	w := j.w
	for g, n := range x {
		w.Groups[g].Grow += n
	}
	ok := true
	for g, n := range x {
		if n > 0 {
			w.Groups[g].Grow -= n
			ok = ok && growth.Of(w.State, &w.Groups[g], n).Count >= n
			w.Groups[g].Grow += n
		}
	}
	for g, n := range x {
		w.Groups[g].Grow -= n
	}
	return ok
}

// cover adds machines to a purchase until nobody is left whom a machine would help: each time
// those of the group whose machine takes most for its cost, filled as the scheduler would.
// It returns how many are left for good.
func (j *judge) cover(x, groups []int) (total int) {
	for range judgeCovers {
		m := j.sim.Mark()
		left, n := j.run(x, 0, 1<<30)
		total = n
		if n > 0 {
			n = j.coverLeft(x, left, groups)
		}
		j.sim.Rollback(m)
		if total == 0 || n == total || j.sim.Steps > j.limit {
			return n
		}
	}
	return total
}

// judgeCovers is how often what is left after all machines have joined is covered again.
const judgeCovers = 4

// coverLeft covers pods that are left on the cluster as it is, with machines of some groups.
// It returns how many remain. It costs the machines times the groups times the classes, and
// the pods.
func (j *judge) coverLeft(x []int, left map[int]int, groups []int) (total int) {
	for _, n := range left {
		total += n
	}
	for total > 0 && j.sim.Steps <= j.limit {
		best, ratio := -1, 0.0
		for _, g := range groups {
			if r := j.worth(x, left, g, len(groups) == 1); r > ratio*(1+1e-9) {
				best, ratio = g, r
			}
		}
		if best < 0 {
			return total
		}
		for again := true; again && total > 0; {
			j.add(best)
			x[best]++
			took, fully := j.fill(left)
			total -= took
			if took == 0 { // with one group alone nothing was tried before
				x[best]--
				return total
			}
			// The same machine again, as long as it would be filled by the same pods.
			again = fully && total > 4*took && j.may(x, best)
		}
	}
	return total
}

// worth is what one machine of a group more would take for its cost; 0: it may not be bought.
func (j *judge) worth(x []int, left map[int]int, g int, alone bool) float64 {
	if !j.may(x, g) {
		return 0
	}
	if alone {
		return 1
	}
	m := j.sim.Mark()
	j.add(g)
	value := 0.0
	for _, c := range j.order {
		if left[c] > 0 {
			size := j.w.Dimensions.Class(c)
			value += float64(j.sim.Bind(c, left[c])) * (binpack.CoreEquivalents(float64(size[0]), float64(size[1])) + 0.01)
		}
	}
	j.sim.Rollback(m)
	return value / j.cost[g]
}

// may tells whether the limits allow one machine of a group more.
func (j *judge) may(x []int, g int) bool {
	x[g]++
	ok := j.within(x)
	x[g]--
	return ok
}

// fill binds what is left, large pods first. It returns how many pods were bound, and whether
// some of each class that was asked are still left.
func (j *judge) fill(left map[int]int) (took int, fully bool) {
	fully = true
	for _, c := range j.order {
		if left[c] > 0 {
			n := j.sim.Bind(c, left[c])
			left[c] -= n
			took += n
			fully = fully && left[c] > 0
		}
	}
	return took, fully
}
