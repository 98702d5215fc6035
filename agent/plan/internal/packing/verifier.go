package packing

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/topology"
)

// verify holds a solution against the scheduler's own rules: it puts the constrained pods where
// the solution has them, in an order that the rules allow. What is not allowed in any is
// taken out and placed pod by pod. It tells whether the solution stands; when the packer
// was wrong about most of a class, that class is hard from now on, and the question is
// to be asked again.
func (v *Solver) verify() bool {
	b := v.w.Topology
	if b == nil {
		return true
	}
	mark := b.State.Mark()
	defer b.State.Rollback(mark)
	r := &verifier{v: v, b: b, st: b.State, nodes: make([]int, 0, len(v.Solution.Bins))}
	if wrong := r.run(); wrong && v.mayAsk {
		return false
	}
	r.placeSingly()
	return true
}

// verifier is the world while a solution comes true.
type verifier struct {
	v     *Solver
	b     *topology.Topology
	st    *fit.State
	nodes []int // by place: its node in st, -1: not there yet
	items []placement
}

// placement are pods of one demand on one place that are still to be put there.
type placement struct {
	demand, bin, portion, left int
}

// run puts pods on the nodes that are there, then on the machines that come. It tells
// whether a class turned out to be hard.
func (r *verifier) run() (wrong bool) {
	r.collect()
	for i := range r.v.Solution.Bins {
		r.nodes = append(r.nodes, r.v.Solution.Bins[i].Node)
	}
	r.put(true)
	for i := range r.v.Solution.Bins {
		if r.nodes[i] < 0 {
			r.nodes[i] = r.addMachine(r.v.Solution.Bins[i].Group)
		}
	}
	r.followAssignment()
	r.put(false)
	lost := make(map[int]int)
	for i := range r.items {
		if r.items[i].left > 0 {
			lost[r.items[i].demand] += r.items[i].left
			r.removeFromSolution(&r.items[i])
		}
	}
	for i, n := range lost {
		if k := &r.v.w.Demands[i]; n*2 > k.Count() {
			k.PerPod, wrong = true, true
		}
	}
	return wrong
}

// followAssignment puts the pods that were divided among zones in the order of the zone assignment.
func (r *verifier) followAssignment() {
	queues := make([]queue, 0, len(r.v.w.Demands)) // those of one class follow each other, as items do
	first := make([]int32, len(r.b.Constrained)+1) // by class, one more than the index of its first queue; 0: it has none
	behind := make([]int32, len(r.items))          // by item, one more than the next of its queue
	of := func(class, cell int) *queue {
		for q := int(first[class]); q > 0 && q <= len(queues) && queues[q-1].class == class; q++ {
			if queues[q-1].domain == cell {
				return &queues[q-1]
			}
		}
		return nil
	}
	for i := range r.items {
		k := &r.v.w.Demands[r.items[i].demand]
		if k.Domain == 0 {
			continue
		}
		q := of(k.Class, k.Domain)
		if q == nil {
			queues = append(queues, queue{class: k.Class, domain: k.Domain})
			if first[k.Class] == 0 {
				first[k.Class] = int32(len(queues))
			}
			q = &queues[len(queues)-1]
		}
		q.push(behind, int32(i+1))
	}
	for _, s := range r.b.Assignment {
		class := int(s.Class)
		q := of(class, int(s.Domain))
		for n := int(s.N); q != nil && n > 0 && q.first > 0; {
			it := &r.items[q.first-1]
			m := min(n, it.left, r.st.MaxFit(class, r.nodes[it.bin]))
			if m <= 0 {
				i := q.pop(behind)
				if it.left > 0 {
					q.push(behind, i) // perhaps later
					n--
				}
				continue
			}
			r.st.Put(class, r.nodes[it.bin], m)
			it.left -= m
			n -= m
		}
	}
}

// queue is a chain of the items of one class in one domain, each one more than its index;
// 0: none.
type queue struct {
	class, domain int
	first, last   int32
}

func (q *queue) push(behind []int32, i int32) {
	behind[i-1] = 0
	if q.first == 0 {
		q.first = i
	} else {
		behind[q.last-1] = i
	}
	q.last = i
}

func (q *queue) pop(behind []int32) int32 {
	i := q.first
	q.first = behind[i-1]
	return i
}

// addMachine adds a machine of a group.
func (r *verifier) addMachine(g int) int {
	gr := &r.v.w.Groups[g]
	_, shape := r.v.w.Template(gr)
	return r.st.AddNode(shape, gr.Template.VolumeLimits)
}

// collect lists the constrained pods in the order of placing; the bins of a demand alternate
// between domains, so that what is spread over zones rises evenly.
func (r *verifier) collect() {
	v := r.v
	count := make([]int32, len(r.b.Constrained)) // by class
	all := int32(0)
	for p := range v.Solution.Bins {
		for _, t := range v.Solution.Bins[p].Portions {
			if class := v.w.Demands[t.Item].Class; r.b.Constrained[class] {
				count[class]++
				all++
			}
		}
	}
	at := int32(0)
	for rank := topology.RankHosts; rank <= topology.RankFree; rank++ {
		for class, n := range count {
			if n > 0 && r.b.Rank[class] == rank {
				at, count[class] = at+n, at // from now on, where its next item goes
			}
		}
	}
	r.items = make([]placement, all)
	for p := range v.Solution.Bins {
		for k, t := range v.Solution.Bins[p].Portions {
			if class := v.w.Demands[t.Item].Class; r.b.Constrained[class] {
				r.items[count[class]] = placement{t.Item, p, k, t.N}
				count[class]++
			}
		}
	}
}

// put goes round as long as something can be put.
func (r *verifier) put(there bool) {
	for progress := true; progress; {
		progress = false
		for from := 0; from < len(r.items); {
			to := from + 1
			class := r.v.w.Demands[r.items[from].demand].Class
			for to < len(r.items) && r.v.w.Demands[r.items[to].demand].Class == class {
				to++
			}
			progress = r.round(r.items[from:to], class, there) || progress
			from = to
		}
	}
}

// round puts what it can of one class, until nothing more goes.
func (r *verifier) round(items []placement, class int, there bool) bool {
	any := false
	for progress := true; progress; {
		progress = false
		for i := range items {
			it := &items[i]
			node := r.nodes[it.bin]
			if it.left == 0 || node < 0 || there && (r.v.Solution.Bins[it.bin].Node < 0 || r.b.Rank[class] == topology.RankZones && r.b.Domains > 1) {
				continue
			}
			if n := min(it.left, r.st.MaxFit(class, node)); n > 0 {
				r.st.Put(class, node, n)
				it.left -= n
				progress, any = true, true
			}
		}
	}
	return any
}

// removeFromSolution takes pods out of the solution.
func (r *verifier) removeFromSolution(it *placement) {
	v := r.v
	pl := &v.Solution.Bins[it.bin]
	pl.Portions = slices.Clone(pl.Portions)
	pl.Portions[it.portion].N -= it.left
	v.w.item(v.w.Demands[it.demand].Class).Take(pl.Room, -it.left)
	v.Solution.Left[it.demand] += it.left
	if pl.Node >= 0 && v.w.Nodes[pl.Node].State != round.StateUpcoming {
		v.Solution.On[it.demand] -= it.left
		return
	}
	v.add(it.demand, pl.Group, -it.left, pl.Fresh)
}

// placeSingly places what is left of the constrained pods by the rules alone: on nodes, on the
// machines of this solution and, where that is not enough, on one machine more of the
// group that the expander would take. It goes round, as one pod's place can be what
// another waits for.
func (r *verifier) placeSingly() {
	v := r.v
	order := make([]int, 0, len(v.w.Demands))
	for i := range v.w.Demands {
		if v.Solution.Left[i] > 0 && r.b.Constrained[v.w.Demands[i].Class] {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Compare(r.b.Rank[v.w.Demands[x].Class], r.b.Rank[v.w.Demands[y].Class])
	})
	for progress := true; progress; {
		progress = false
		for _, i := range order {
			progress = r.placeOn(i) || progress
		}
		for _, i := range order {
			for v.w.Demands[i].Buys && v.Solution.Left[i] > 0 && r.addBin(i) {
				progress = true
				r.placeOn(i)
			}
		}
	}
	r.dropEmpty()
}

// placeOn puts pods of a demand wherever there is room. It costs the places, once more for each time that some were put.
func (r *verifier) placeOn(i int) bool {
	v := r.v
	if r.keepsToOneHost(v.w.Demands[i].Class) {
		return r.placeTogether(i)
	}
	any := false
	for progress := true; progress && v.Solution.Left[i] > 0; {
		progress = false
		for p := 0; p < len(v.Solution.Bins) && v.Solution.Left[i] > 0; p++ {
			if n := r.roomOn(i, p); n > 0 {
				r.putOn(i, p, n)
				progress, any = true, true
			}
		}
	}
	return any
}

// roomOn is how many of the pods of a demand that are left may go on a place.
func (r *verifier) roomOn(i, p int) int {
	v, k, pl := r.v, &r.v.w.Demands[i], &r.v.Solution.Bins[p]
	size, filters := v.w.Dimensions.Class(k.Class), v.w.FiltersOf(k.Class)
	if pl.Node >= 0 && !filters.May(pl.Node) || !binpack.Fits(pl.Room, size) || !k.Buys && pl.Fresh || pl.Node >= 0 && !filters.Passes(pl.Node) || pl.Node < 0 && !v.passes(k.Class, pl) {
		return 0
	}
	return min(v.Solution.Left[i], binpack.MaxFit(pl.Room, size), r.st.MaxFit(k.Class, r.nodes[p]))
}

// putOn puts pods of a demand on a place.
func (r *verifier) putOn(i, p, n int) {
	r.st.Put(r.v.w.Demands[i].Class, r.nodes[p], n)
	r.v.Put(&r.v.Solution.Bins[p], i, n)
}

// addBin adds one machine that would take a pod of a demand: of the best group that has one
// and whose machine the rules let the pod on.
func (r *verifier) addBin(i int) bool {
	v := r.v
	k := &v.w.Demands[i]
	for _, g := range v.preferred(i) {
		if v.own(g) <= 0 {
			continue
		}
		mark := r.st.Mark()
		node := r.addMachine(g)
		if !r.st.Passes(k.Class, node) {
			r.st.Rollback(mark)
			continue
		}
		fresh := v.upcoming[g] == 0
		if fresh {
			v.Solution.Grow[g]++
		} else {
			v.upcoming[g]--
		}
		empty, _ := v.w.Template(&v.w.Groups[g])
		v.Solution.Bins = append(v.Solution.Bins, Bin{Node: -1, Group: g, Room: slices.Clone(empty), Fresh: fresh})
		r.nodes = append(r.nodes, node)
		return true
	}
	return false
}

// preferred are the groups whose machine has room for a demand, the best first. It costs sorting G.
func (v *Solver) preferred(i int) []int {
	class, item := v.w.Demands[i].Class, v.w.item(v.w.Demands[i].Class)
	options := v.singles[:0]
	for g := range v.w.Groups {
		gr := &v.w.Groups[g]
		if gr.Template.Unknown != "" {
			continue
		}
		empty, shape := v.w.Template(gr)
		per := cmp.Or(item.MaxFit(empty), binpack.MaxFit(empty, v.w.Dimensions.Class(class))) // what is asked of others is verified
		if per == 0 || !v.w.Takes(class, g, shape) || !v.w.Topology.Reachable(class, g) {
			continue
		}
		if limit := v.own(g); limit > 0 {
			options = append(options, v.alone(i, g, per, limit))
		}
	}
	v.singles = options
	out := make([]int, len(options))
	for n := range options {
		out[n] = n
	}
	slices.SortStableFunc(out, func(x, y int) int {
		switch {
		case v.better(&options[x], &options[y]):
			return -1
		case v.better(&options[y], &options[x]):
			return 1
		}
		return 0
	})
	for n, x := range out {
		out[n] = options[x].group
	}
	return out
}

// alone is the option of a group for one demand with nothing else on its machines: so many pods on each of so many at most.
func (v *Solver) alone(i, g, per, limit int) option {
	empty, _ := v.w.Template(&v.w.Groups[g])
	pods, size := min(v.Solution.Left[i], per*limit), v.w.Dimensions.Class(v.w.Demands[i].Class)
	machines := (pods + per - 1) / per
	o := option{Purchase: Purchase{group: g, pods: pods, fresh: max(machines-v.upcoming[g], 0)}, left: v.Solution.Left[i] - pods}
	o.weigh([2]float64{float64(size[0]) * float64(pods), float64(size[1]) * float64(pods)}, empty, machines)
	o.price = v.w.prices[g] * float64(o.fresh)
	return o
}

// dropEmpty gives bought machines back that nothing is on any more.
func (r *verifier) dropEmpty() {
	v := r.v
	v.Solution.Bins = slices.DeleteFunc(v.Solution.Bins, func(p Bin) bool {
		if p.Node >= 0 || !p.Fresh || slices.ContainsFunc(p.Portions, func(t binpack.Portion) bool { return t.N > 0 }) {
			return false
		}
		v.Solution.Grow[p.Group]--
		return true
	})
}
