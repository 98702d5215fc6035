package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

const keyHostname = "kubernetes.io/hostname"

// bonds is what ties the pending pods to other pods and to volumes, worked out once a
// round. The packer knows nothing of it: constraints are turned into what a packer
// understands (cells.go: which zones' machines a pod may go on; axes.go: room of
// machines), the answer is held against the scheduler's own rules (verify.go), and what
// does not pass is placed pod by pod.
type bonds struct {
	w       *roundState
	state   *fit.State        // every node with what is on it now
	volumes *fit.State        // the same classes with nothing but where their volumes can be
	tied    []bool            // by class
	rank    []int8            // by class: the order in which pods are placed
	cell    []int             // by group: where its machines stand, from 1 on
	at      []int             // by node, the same
	labels  map[string][]bool // see labelled
	stood   [][]bool          // see standing
	known   [][]int8          // by class and group: whether the volumes can be had there; 0: not asked yet
	sizes   [][]int64         // by class: the size with the axes of hosts; nil: no such axes
	axes    int
	cells   int
	spreads []spreadAxis
	keys    slots[cluster.PodKey] // room for dividing
	aparts  []apartAxis

	sequence []step // how pods were divided among zones: an order that the rules allow
}

// apartAxis is an axis of anti-affinity on hosts: where it is in a size, and its room.
type apartAxis struct {
	at   int
	room int64
}

// spreadAxis is an axis of spread over hosts: where it is in a size, and for whom.
type spreadAxis struct{ at, rep, skew int }

// The order of placing: those whose rule looks at numbers first, while the numbers are
// still as planned; those that only others look at last.
const (
	rankHosts int8 = iota // spread over hosts
	rankZones             // spread over zones, which counts what is spread over hosts as well
	rankNear              // affinity
	rankApart             // anti-affinity and volumes
	rankFree
)

// tie looks for constraints among the pending pods. Most rounds have none, and then
// nothing is built.
func (w *roundState) tie() {
	if !w.mayTie() {
		return
	}
	b := &bonds{w: w, state: w.newState(), tied: make([]bool, len(w.s.Classes))}
	any := false
	for i := range w.want {
		class := w.want[i].class
		b.tied[class] = b.state.Tied(class)
		any = any || b.tied[class]
	}
	if !any {
		return
	}
	w.bonds = b
	b.known = make([][]int8, len(w.s.Classes))
	b.rank = make([]int8, len(w.s.Classes))
	for i := range b.rank {
		b.rank[i] = rankOf(&w.s.Classes[i])
	}
	b.split()
	for i := range w.want {
		k := &w.want[i]
		k.hard = k.hard || slices.ContainsFunc(w.s.Classes[k.class].Volumes, func(v cluster.Volume) bool { return v.OnePod })
	}
	b.addAxes()
	b.even()
}

// mayTie tells whether a pending pod asks for anything of other pods or of volumes, or
// whether some pod keeps others away.
func (w *roundState) mayTie() bool {
	for i := range w.want {
		c := &w.s.Classes[w.want[i].class]
		if len(c.PodAffinity)+len(c.PodAntiAffinity)+len(c.Spread)+len(c.Volumes) > 0 {
			return true
		}
	}
	return slices.ContainsFunc(w.s.Classes, func(c cluster.PodClass) bool { return len(c.PodAntiAffinity) > 0 })
}

func rankOf(c *cluster.PodClass) int8 {
	rank := rankFree
	if len(c.PodAntiAffinity)+len(c.Volumes) > 0 {
		rank = rankApart
	}
	if len(c.PodAffinity) > 0 {
		rank = rankNear
	}
	for i := range c.Spread {
		if c.Spread[i].TopologyKey != keyHostname {
			return rankZones
		}
		rank = rankHosts
	}
	return rank
}

// newState is every node with the pods on it, those that were nominated included.
func (w *roundState) newState() *fit.State { return w.fill(fit.NewState(w.s.Classes, w.s.Namespaces)) }

func (w *roundState) fill(st *fit.State) *fit.State {
	for i := range w.nodes {
		n := &w.nodes[i]
		limits := n.VolumeLimits
		if limits == nil && n.group >= 0 {
			limits = w.groups[n.group].Template.VolumeLimits
		}
		st.AddNode(&n.shape, limits)
		for k := range n.Pods {
			switch pod := &n.Pods[k]; {
			case pod.Finished:
			case pod.Deleting.IsZero():
				st.Put(pod.Class, i, 1)
			default:
				st.PutLeaving(pod.Class, i, 1)
			}
		}
	}
	for _, i := range w.line.nominated {
		pod := &w.s.Pods[i]
		if n, ok := w.byName[pod.Nominated]; ok {
			st.Put(pod.Class, n, 1)
		}
	}
	return st
}

// of is the vector of a class with the axes of hosts.
func (w *roundState) size(class int) []int64 {
	if w.bonds == nil || w.bonds.sizes == nil {
		return w.space.Class(class)
	}
	return w.bonds.sizes[class]
}

// reaches tells whether a class's volumes can be had on a group's machine, and whether
// the machine says where it stands in every domain that the class's own terms name.
func (b *bonds) reaches(class, g int) bool {
	if !b.tied[class] {
		return true
	}
	c := &b.w.s.Classes[class]
	if stands := b.standing(class)[g]; !stands || len(c.Volumes) == 0 {
		return stands
	}
	if b.known[class] == nil {
		b.known[class] = make([]int8, len(b.w.groups))
	}
	known := &b.known[class][g]
	if *known == 0 {
		*known = -1
		if b.volumes == nil {
			everyKey := func(string) bool { return true }
			b.volumes = b.state.Within(fit.Scope{Without: everyKey, NoLimits: true})
		}
		mark := b.volumes.Mark()
		_, shape := b.w.template(&b.w.groups[g])
		if node := b.volumes.AddNode(shape, nil); b.volumes.Passes(class, node) {
			*known = 1
		}
		b.volumes.Rollback(mark)
	}
	return *known > 0
}

// standing tells by group whether its template says where its machines stand in all the
// domains that a class's own terms name. Most classes name one, and share what is said.
func (b *bonds) standing(class int) []bool {
	if b.stood == nil {
		b.stood = make([][]bool, len(b.tied))
	}
	if b.stood[class] != nil {
		return b.stood[class]
	}
	var keys []string
	keysOf(&b.w.s.Classes[class], func(key string) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	})
	by := b.labelled(keyHostname) // every group has that
	for n, key := range keys {
		if n == 0 {
			by = b.labelled(key)
			continue
		}
		by = slices.Clone(by)
		for g, has := range b.labelled(key) {
			by[g] = by[g] && has
		}
	}
	b.stood[class] = by
	return by
}

// labelled tells by group whether its template says where its machines stand in the
// domains of a topology key.
func (b *bonds) labelled(key string) []bool {
	if by := b.labels[key]; by != nil {
		return by
	}
	by := make([]bool, len(b.w.groups))
	for g := range by {
		_, has := b.w.groups[g].Template.Labels[key]
		by[g] = has || key == keyHostname
	}
	set(&b.labels, key, by)
	return by
}

// lacking is the first topology key of the class's own terms that a group's template
// says nothing about; its machines would stand in a domain that nobody knows yet.
func (b *bonds) lacking(class, g int) string {
	labels := b.w.groups[g].Template.Labels
	lacks := ""
	keysOf(&b.w.s.Classes[class], func(key string) {
		if _, has := labels[key]; !has && key != keyHostname && (lacks == "" || key < lacks) {
			lacks = key
		}
	})
	return lacks
}

func keysOf(c *cluster.PodClass, visit func(key string)) {
	for i := range c.PodAffinity {
		visit(c.PodAffinity[i].TopologyKey)
	}
	for i := range c.PodAntiAffinity {
		visit(c.PodAntiAffinity[i].TopologyKey)
	}
	for i := range c.Spread {
		visit(c.Spread[i].TopologyKey)
	}
}

// zoned tells whether a class has a term of its own on a key other than hostname.
func zoned(c *cluster.PodClass) bool {
	found := false
	keysOf(c, func(key string) { found = found || key != keyHostname })
	return found
}

// place numbers the cells: groups and nodes of one cell carry the same values of every
// topology key that is in use, hostname aside.
func (b *bonds) place(keys []string) (cells int) {
	w := b.w
	ids := make(map[string]int)
	of := func(labels map[string]string) int {
		var name strings.Builder
		for _, k := range keys {
			v, has := labels[k]
			if !has {
				name.WriteByte('-')
			}
			name.WriteString(strconv.Quote(v))
		}
		if ids[name.String()] == 0 {
			ids[name.String()] = len(ids) + 1
		}
		return ids[name.String()]
	}
	b.cell, b.at = make([]int, len(w.groups)), make([]int, len(w.nodes))
	for g := range w.groups {
		b.cell[g] = of(w.groups[g].Template.Labels)
	}
	for n := range w.nodes {
		b.at[n] = of(w.nodes[n].shape.Labels)
	}
	b.cells = len(ids)
	return len(ids)
}

// stands tells whether a want may go on a group's machines as far as its cell and its
// volumes are concerned.
func (b *bonds) stands(k *want, g int) bool {
	if b == nil {
		return true
	}
	return !k.hard && (k.cell == 0 || k.cell == b.cell[g]) && b.reaches(k.class, g)
}

// allow tells whether a want may go on a place: its cell, and for a node what is on it
// now.
func (b *bonds) allow(k *want, p *place) bool {
	if b == nil {
		return true
	}
	if p.node < 0 {
		return b.stands(k, p.group)
	}
	return (k.cell == 0 || k.cell == b.at[p.node]) && (!b.tied[k.class] || b.state.Passes(k.class, p.node))
}

// settle puts the tied pods of the answer that was taken where they are to go, so that
// what is asked from then on is asked of the world as planned.
func (b *bonds) settle(a *answer) {
	if b == nil {
		return
	}
	for i := range a.places {
		pl := &a.places[i]
		node := pl.node
		if node < 0 {
			gr := &b.w.groups[pl.group]
			_, shape := b.w.template(gr)
			node = b.state.AddNode(shape, gr.Template.VolumeLimits)
		}
		for _, t := range pl.parts {
			if class := b.w.want[t.item].class; b.tied[class] {
				b.state.Put(class, node, t.n)
			}
		}
	}
}

// refused says in the scheduler's words why one more pod of a class could not go onto
// one more machine of a group.
func (b *bonds) refused(class int, g *group) (rule, words string) {
	if b == nil || !b.tied[class] {
		return "", ""
	}
	_, shape := b.w.template(g)
	mark := b.state.Mark()
	defer b.state.Rollback(mark)
	rule, words = b.state.Refused(class, b.state.AddNode(shape, g.Template.VolumeLimits))
	if lacks := b.lacking(class, b.w.byID[g.ID]); words == "" && lacks != "" {
		return fit.RuleInterPod, "the group's template says nothing about " + lacks
	}
	return rule, words
}

// cellOf is the cell that a place is in.
func (b *bonds) cellOf(p *place) int {
	if p.node < 0 {
		return b.cell[p.group]
	}
	return b.at[p.node]
}
