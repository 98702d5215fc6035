package topology

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// exclusive is the room of a dimension of anti-affinity: a pod with the term takes all of it,
// and a pod that the term selects takes one.
const exclusive = 1 << 16

// dimension is one constraint on hostname as room of a machine.
type dimension struct {
	room         int64         // of a machine that is bought
	takes        map[int]int64 // by kind
	rep          int           // a class of the kind that the dimension is about
	antiAffinity bool          // anti-affinity; else spread
}

// maxNumbers bounds what the dimensions take: their number times nodes, classes and groups. A round
// with more has no dimensions for the kinds of the fewest pods: the packing of these is
// held against the scheduler's rules (verifier.go), and pods that do not pass are placed singly.
const maxNumbers = 4_000_000

// constraintClasses are the classes that differ in nothing that hostname terms look at: their
// requests do not matter here.
type constraintClasses struct {
	of   []int32 // by class, one more than its kind; 0: not wanted, or not constrained
	reps []int   // a class of each kind
}

// addDimensions turns terms on hostname into dimensions. Conflicts are found by the
// scheduler's rules themselves, on machines that carry nothing else: one question per
// pair of constraint classes that can touch each other at all.
func (b *Topology) addDimensions() {
	w := b.w
	ks := b.constraintClasses()
	hosts := make([]cluster.PodClass, len(ks.reps)) // one class of each kind is asked for all of them
	for a, class := range ks.reps {
		hosts[a] = w.Snapshot.Classes[class]
		hostsOnly(&hosts[a])
	}
	st := fit.NewState(hosts, w.Snapshot.Namespaces)
	var shape fit.NodeInfo // the terms that are left look at hosts alone
	st.AddNode(&shape, nil)
	st.AddNode(&shape, nil) // stays empty: the smallest count
	var dimensions []dimension
	for _, a := range b.withDimensions(ks) {
		c := &hosts[a]
		if len(c.PodAntiAffinity) > 0 {
			dimensions = b.antiAffinityOf(dimensions, ks, st, a)
		}
		if len(c.Spread) > 0 {
			dimensions = b.spreadOf(dimensions, ks, st, hosts, a)
		}
	}
	for a := range hosts {
		if len(hosts[a].PodAffinity) > 0 {
			b.markPerPod(ks, a)
		}
	}
	b.extendSizes(ks, dimensions)
}

func hostsOnly(c *cluster.PodClass) {
	zone := func(t cluster.PodTerm) bool { return t.TopologyKey != KeyHostname }
	c.PodAffinity = slices.DeleteFunc(slices.Clone(c.PodAffinity), zone)
	c.PodAntiAffinity = slices.DeleteFunc(slices.Clone(c.PodAntiAffinity), zone)
	c.Spread = slices.DeleteFunc(slices.Clone(c.Spread), func(t cluster.Spread) bool { return t.TopologyKey != KeyHostname })
	for i := range c.Spread {
		c.Spread[i].MinDomains = 0
		c.Spread[i].IgnoreNodeAffinity, c.Spread[i].HonorTaints = true, false
	}
	c.Volumes = nil
}

// withDimensions are the kinds, or as many of them as maxNumbers allows: those of the most pods
// that wait.
func (b *Topology) withDimensions(ks *constraintClasses) []int {
	kinds := make([]int, len(ks.reps))
	for a := range kinds {
		kinds[a] = a
	}
	const each = 2 // a kind has one dimension for anti-affinity and one for spread
	most := maxNumbers / (len(b.w.Nodes) + len(b.w.Snapshot.Classes) + len(b.w.Groups)) / each
	if len(kinds) <= most {
		return kinds
	}
	pods := make([]int, len(kinds))
	for i := range b.w.Demands {
		if k := &b.w.Demands[i]; ks.of[k.Class] > 0 {
			pods[ks.of[k.Class]-1] += k.Count()
		}
	}
	slices.SortStableFunc(kinds, func(x, y int) int { return cmp.Compare(pods[y], pods[x]) })
	kinds = kinds[:most]
	slices.Sort(kinds)
	return kinds
}

// constraintClasses sorts the wanted classes that are constrained into constraint classes.
func (b *Topology) constraintClasses() *constraintClasses {
	ks := &constraintClasses{of: make([]int32, len(b.Constrained))}
	ids := make(map[string]int32)
	known := make([]int32, len(b.Constrained)) // by tie, the kind of its classes
	var buf []byte
	for i := range b.w.Demands {
		class := b.w.Demands[i].Class
		if !b.Constrained[class] {
			continue
		}
		tie := b.State.ConstraintClass(class)
		if known[tie] > 0 {
			ks.of[class] = known[tie]
			continue
		}
		c := &b.w.Snapshot.Classes[class]
		buf = cluster.AppendPodDemands(cluster.AppendLabels(cluster.AppendString(buf[:0], c.Namespace), c.Labels), c)
		id, has := ids[string(buf)]
		if !has {
			ks.reps = append(ks.reps, class)
			id = int32(len(ks.reps))
			ids[string(buf)] = id
		}
		ks.of[class], known[tie] = id, id
	}
	return ks
}

// near yields the constraint classes that can touch kind a. st knows constraint classes as its classes.
func (ks *constraintClasses) near(st *fit.State, a int, visit func(o int)) {
	for o := range ks.reps {
		if st.Component(o) == st.Component(a) {
			visit(o)
		}
	}
}

// antiAffinityOf adds the dimension of a kind that keeps constraint classes away from its machine.
func (b *Topology) antiAffinityOf(dimensions []dimension, ks *constraintClasses, st *fit.State, a int) []dimension {
	x := dimension{room: exclusive, takes: map[int]int64{}, rep: ks.reps[a], antiAffinity: true}
	mark := st.Mark()
	st.Put(a, 0, 1)
	ks.near(st, a, func(o int) {
		if !st.Passes(o, 0) {
			x.takes[o] = 1
		}
	})
	st.Rollback(mark)
	if len(x.takes) == 0 {
		return dimensions
	}
	if x.takes[a] == 0 { // it keeps others away and not its like: no room can say that
		b.markPerPod(ks, a)
		return dimensions
	}
	x.takes[a] = exclusive
	if len(x.takes) == 1 {
		x.room, x.takes[a] = 1, 1
	}
	return append(dimensions, x)
}

// spreadOf adds the dimension of a kind that is spread over hosts: no machine carries more of
// those that are counted than the skew, as long as some machine may carry none. A pod that is
// counted and has no constraint of its own comes later and takes no room here.
func (b *Topology) spreadOf(dimensions []dimension, ks *constraintClasses, st *fit.State, hosts []cluster.PodClass, a int) []dimension {
	least := math.MaxInt
	for i := range hosts[a].Spread {
		least = min(least, hosts[a].Spread[i].MaxSkew)
	}
	if most := st.MaxFit(a, 0); most < math.MaxInt32 { // of several constraints, the ones that count the kind itself
		least = most
	}
	x := dimension{room: int64(least), takes: map[int]int64{}, rep: ks.reps[a]}
	ks.near(st, a, func(o int) {
		if len(hosts[o].Spread) == 0 {
			return
		}
		mark := st.Mark()
		st.Put(o, 0, least+1)
		if !st.Passes(a, 0) {
			x.takes[o] = 1
		}
		st.Rollback(mark)
	})
	for i := range dimensions {
		if !dimensions[i].antiAffinity && dimensions[i].room == x.room && maps.Equal(dimensions[i].takes, x.takes) {
			return dimensions // one says enough for both
		}
	}
	return append(dimensions, x)
}

// markPerPod leaves a kind to be placed pod by pod.
func (b *Topology) markPerPod(ks *constraintClasses, a int) {
	for i := range b.w.Demands {
		if k := &b.w.Demands[i]; int(ks.of[k.Class]) == a+1 {
			k.PerPod = true
		}
	}
}

// extendSizes writes the dimensions into the sizes of all classes, and the room of each into the
// nodes and templates.
func (b *Topology) extendSizes(ks *constraintClasses, dimensions []dimension) {
	w := b.w
	volumes := b.volumeDimensions()
	b.dimensions = len(dimensions) + len(volumes)
	if b.dimensions == 0 {
		return
	}
	for i := range dimensions {
		if dimensions[i].antiAffinity {
			b.antiAffinity = append(b.antiAffinity, antiAffinityDimension{w.Dimensions.Len() + i, dimensions[i].room})
		} else {
			b.spreads = append(b.spreads, spreadDimension{at: w.Dimensions.Len() + i, rep: dimensions[i].rep, skew: int(dimensions[i].room)})
		}
	}
	b.sizes = make([][]int64, len(w.Snapshot.Classes))
	wide := w.Dimensions.Len() + b.dimensions
	flat := make([]int64, len(b.sizes)*wide)
	for class := range b.sizes {
		b.sizes[class] = append(flat[class*wide:class*wide:(class+1)*wide], w.Dimensions.Class(class)...)
		kind := int(ks.of[class]) - 1
		for i := range dimensions {
			b.sizes[class] = append(b.sizes[class], dimensions[i].takes[kind])
		}
		for _, d := range volumes {
			b.sizes[class] = append(b.sizes[class], d.handles(&w.Snapshot.Classes[class]))
		}
	}
	for n := range w.Nodes {
		nd := &w.Nodes[n]
		nd.Room = slices.Clip(nd.Room)
		for i := range dimensions {
			nd.Room = append(nd.Room, b.roomOn(&dimensions[i], n))
		}
		for _, d := range volumes {
			nd.Room = append(nd.Room, b.attachable(d, nd))
		}
	}
	flat = make([]int64, len(w.Groups)*wide)
	for g := range w.Groups {
		gr := &w.Groups[g]
		w.Template(gr)
		gr.Empty = append(flat[g*wide:g*wide:(g+1)*wide], gr.Empty...)
		for i := range dimensions {
			gr.Empty = append(gr.Empty, dimensions[i].room)
		}
		for _, d := range volumes {
			gr.Empty = append(gr.Empty, d.room(gr.Template.VolumeLimits))
		}
	}
}

// roomOn is the room that a node has left in a dimension.
func (b *Topology) roomOn(x *dimension, n int) int64 {
	if st := b.w.Nodes[n].State; st == round.StateOut {
		return 0
	}
	most := int64(b.hosts.MaxFit(x.rep, n))
	if !x.antiAffinity {
		return min(most, math.MaxInt32)
	}
	if most > 0 {
		return x.room
	}
	return x.room - 1
}

// driver is the attach limit of one CSI driver as a dimension.
type driver string

func (b *Topology) volumeDimensions() []driver {
	var out []driver
	for i := range b.w.Demands {
		c := &b.w.Snapshot.Classes[b.w.Demands[i].Class]
		for v := range c.Volumes {
			if d := driver(c.Volumes[v].Driver); d != "" && !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	slices.Sort(out)
	return out
}

func (d driver) handles(c *cluster.PodClass) int64 {
	var seen []string
	for i := range c.Volumes {
		if v := &c.Volumes[i]; v.Driver == string(d) && !slices.Contains(seen, v.Handle) {
			seen = append(seen, v.Handle)
		}
	}
	return int64(len(seen))
}

func (d driver) room(limits map[string]int64) int64 {
	if n, has := limits[string(d)]; has {
		return n
	}
	return math.MaxInt32
}

// attachable is how many more volumes of a driver a node can take. Volumes of pods that
// are still to come are counted one by one; State, which knows those that are shared,
// has the last word.
func (b *Topology) attachable(d driver, n *round.Node) int64 {
	room := d.room(n.Limits)
	if room == math.MaxInt32 {
		return room
	}
	seen := make(map[string]bool)
	for i := range n.Pods {
		c := &b.w.Snapshot.Classes[n.Pods[i].Class]
		for v := range c.Volumes {
			if !n.Pods[i].Finished && c.Volumes[v].Driver == string(d) {
				seen[c.Volumes[v].Handle] = true
			}
		}
	}
	return max(room-int64(len(seen)), 0)
}
