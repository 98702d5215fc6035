package plan

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

const keyHostname = "kubernetes.io/hostname"

// topology is what constraints the pending pods to other pods and to volumes, worked out once a
// round. The packer knows nothing of it: constraints are turned into what a packer
// understands (zoneassignment.go: which zones' machines a pod may go on; dimensions.go: room of
// machines), the answer is held against the scheduler's own rules (verifier.go), and what
// does not pass is placed pod by pod.
type topology struct {
	w                *roundState
	state            *fit.State        // every node with what is on it now
	volumes          *fit.State        // the same classes with nothing but where their volumes can be
	constrained      []bool            // by class
	rank             []int8            // by class: the order in which pods are placed
	groupDomain      []int             // by group: where its machines stand, from 1 on
	nodeDomain       []int             // by node, the same
	labelled         map[string][]bool // see labelled
	standingGroups   [][]bool          // see standing
	reachableVolumes [][]int8          // by class and group: whether the volumes can be had there; 0: not asked yet
	sizes            [][]int64         // by class: the size with the dimensions of hosts; nil: no such dimensions
	dimensions       int
	domains          int
	spreads          []spreadDimension
	antiAffinity     []antiAffinityDimension

	assignment []assignmentStep // how pods were divided among zones: an order that the rules allow
}

// antiAffinityDimension is a dimension of anti-affinity on hosts: where it is in a size, and its room.
type antiAffinityDimension struct {
	at   int
	room int64
}

// spreadDimension is a dimension of spread over hosts: where it is in a size, and for whom.
type spreadDimension struct{ at, rep, skew int }

// The order of placing: those whose rule looks at numbers first, while the numbers are
// still as planned; those that only others look at last.
const (
	rankHosts        int8 = iota // spread over hosts
	rankZones                    // spread over zones, which counts what is spread over hosts as well
	rankAffinity                 // affinity
	rankAntiAffinity             // anti-affinity and volumes
	rankFree
)

// compileTopology looks for constraints among the pending pods. Most rounds have none, and then
// nothing is built.
func compileTopology(w *roundState) *topology {
	if !mayBeConstrained(w) {
		return nil
	}
	b := &topology{w: w, state: w.newState(), constrained: make([]bool, len(w.s.Classes))}
	any := false
	for i := range w.demands {
		class := w.demands[i].class
		b.constrained[class] = b.state.Constrained(class)
		any = any || b.constrained[class]
	}
	if !any {
		return nil
	}
	b.reachableVolumes = make([][]int8, len(w.s.Classes))
	b.rank = make([]int8, len(w.s.Classes))
	for i := range b.rank {
		b.rank[i] = rankOf(&w.s.Classes[i])
	}
	b.assignZones()
	for i := range w.demands {
		k := &w.demands[i]
		k.perPod = k.perPod || slices.ContainsFunc(w.s.Classes[k.class].Volumes, func(v cluster.Volume) bool { return v.OnePod })
	}
	b.addDimensions()
	b.balance()
	return b
}

// mayBeConstrained tells whether a pending pod asks for anything of other pods or of volumes, or
// whether some pod keeps others away.
func mayBeConstrained(w *roundState) bool {
	for i := range w.demands {
		c := &w.s.Classes[w.demands[i].class]
		if len(c.PodAffinity)+len(c.PodAntiAffinity)+len(c.Spread)+len(c.Volumes) > 0 {
			return true
		}
	}
	return slices.ContainsFunc(w.s.Classes, func(c cluster.PodClass) bool { return len(c.PodAntiAffinity) > 0 })
}

func rankOf(c *cluster.PodClass) int8 {
	rank := rankFree
	if len(c.PodAntiAffinity)+len(c.Volumes) > 0 {
		rank = rankAntiAffinity
	}
	if len(c.PodAffinity) > 0 {
		rank = rankAffinity
	}
	for i := range c.Spread {
		if c.Spread[i].TopologyKey != keyHostname {
			return rankZones
		}
		rank = rankHosts
	}
	return rank
}

// reachable tells whether a class's volumes can be had on a group's machine, and whether
// the machine says where it stands in every domain that the class's own terms name.
func (b *topology) reachable(class, g int) bool {
	if !b.constrained[class] {
		return true
	}
	c := &b.w.s.Classes[class]
	if stands := b.groupsWithLabels(class)[g]; !stands || len(c.Volumes) == 0 {
		return stands
	}
	if b.reachableVolumes[class] == nil {
		b.reachableVolumes[class] = make([]int8, len(b.w.groups))
	}
	known := &b.reachableVolumes[class][g]
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

// groupsWithLabels tells by group whether its template says where its machines stand in all the
// domains that a class's own terms name. Most classes name one, and share what is said.
func (b *topology) groupsWithLabels(class int) []bool {
	if b.standingGroups == nil {
		b.standingGroups = make([][]bool, len(b.constrained))
	}
	if b.standingGroups[class] != nil {
		return b.standingGroups[class]
	}
	var keys []string
	keysOf(&b.w.s.Classes[class], func(key string) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	})
	by := b.labelledGroups(keyHostname) // every group has that
	for n, key := range keys {
		if n == 0 {
			by = b.labelledGroups(key)
			continue
		}
		by = slices.Clone(by)
		for g, has := range b.labelledGroups(key) {
			by[g] = by[g] && has
		}
	}
	b.standingGroups[class] = by
	return by
}

// labelledGroups tells by group whether its template says where its machines stand in the
// domains of a topology key.
func (b *topology) labelledGroups(key string) []bool {
	if by := b.labelled[key]; by != nil {
		return by
	}
	by := make([]bool, len(b.w.groups))
	for g := range by {
		_, has := b.w.groups[g].Template.Labels[key]
		by[g] = has || key == keyHostname
	}
	set(&b.labelled, key, by)
	return by
}

// missingLabel is the first topology key of the class's own terms that a group's template
// says nothing about; its machines would stand in a domain that nobody knows yet.
func (b *topology) missingLabel(class, g int) string {
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

// hasZoneTerms tells whether a class has a term of its own on a key other than hostname.
func hasZoneTerms(c *cluster.PodClass) bool {
	found := false
	keysOf(c, func(key string) { found = found || key != keyHostname })
	return found
}

// numberDomains numbers the domains: groups and nodes of one domain carry the same values of every
// topology key that is in use, hostname aside.
func (b *topology) numberDomains(keys []string) (cells int) {
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
	b.groupDomain, b.nodeDomain = make([]int, len(w.groups)), make([]int, len(w.nodes))
	for g := range w.groups {
		b.groupDomain[g] = of(w.groups[g].Template.Labels)
	}
	for n := range w.nodes {
		b.nodeDomain[n] = of(w.nodes[n].shape.Labels)
	}
	b.domains = len(ids)
	return len(ids)
}

// allowsGroup tells whether a demand may go on a group's machines as far as its domain and its
// volumes are concerned.
func (b *topology) allowsGroup(k *demand, g int) bool {
	if b == nil {
		return true
	}
	return !k.perPod && (k.domain == 0 || k.domain == b.groupDomain[g]) && b.reachable(k.class, g)
}

// allowsBin tells whether a demand may go on a place: its domain, and for a node what is on it
// now.
func (b *topology) allowsBin(k *demand, node, group int) bool {
	if b == nil {
		return true
	}
	if node < 0 {
		return b.allowsGroup(k, group)
	}
	return (k.domain == 0 || k.domain == b.nodeDomain[node]) && (!b.constrained[k.class] || b.state.Passes(k.class, node))
}

// refused says in the scheduler's words why one more pod of a class could not go onto
// one more machine of a group.
func (b *topology) refused(class int, g *group) (rule, words string) {
	if b == nil || !b.constrained[class] {
		return "", ""
	}
	_, shape := b.w.template(g)
	mark := b.state.Mark()
	defer b.state.Rollback(mark)
	rule, words = b.state.Refused(class, b.state.AddNode(shape, g.Template.VolumeLimits))
	if lacks := b.missingLabel(class, b.w.byID[g.ID]); words == "" && lacks != "" {
		return fit.RuleInterPod, "the group's template says nothing about " + lacks
	}
	return rule, words
}

// domainOf is the domain that a place is in.
func (b *topology) domainOf(node, group int) int {
	if node < 0 {
		return b.groupDomain[group]
	}
	return b.nodeDomain[node]
}

// size is the vector of a class with the dimensions of hosts.
func (b *topology) size(class int) []int64 {
	if b.sizes == nil {
		return b.w.space.Class(class)
	}
	return b.sizes[class]
}

// hostSpread are the dimensions of spread over hosts that a group's machines can be raised on.
func (b *topology) hostSpread(g int) *hostSpread {
	if b == nil || len(b.spreads) == 0 {
		return nil
	}
	lv := &hostSpread{}
	mark := b.state.Mark()
	_, shape := b.w.template(&b.w.groups[g])
	node := b.state.AddNode(shape, nil)
	for _, x := range b.spreads {
		most := b.state.MaxFit(x.rep, node)
		if most < math.MaxInt32 {
			most -= x.skew
		} else {
			most = math.MaxInt
		}
		lv.axis, lv.most = append(lv.axis, x.at), append(lv.most, max(most, 0))
	}
	b.state.Rollback(mark)
	return lv
}
