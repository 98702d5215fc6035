package topology

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

const KeyHostname = "kubernetes.io/hostname"

// Topology holds the constraints between the pending pods, other pods and volumes, worked out once a
// round. The packer knows nothing of it: constraints are turned into what a packer
// understands (zoneassignment.go: which zones' machines a pod may go on; dimensions.go: room of
// machines), the answer is held against the scheduler's own rules (verifier.go), and what
// does not pass is placed pod by pod.
type Topology struct {
	w            *round.State
	State        *fit.State // every node with what is on it now
	hosts        *fit.State // the same without terms on zones: what keeps pods off a node whatever runs in other zones by then
	volumes      *fit.State // the same classes with nothing but where their volumes can be
	Constrained  []bool     // by class
	Rank         []int8     // by class: the order in which pods are placed
	GroupDomain  []int      // by group: where its machines stand, from 1 on
	NodeDomain   []int      // by node, the same
	reachable    [][]int8   // by class and group: see Reachable; 0: not asked yet
	sizes        [][]int64  // by class: the size with the dimensions of hosts; nil: no such dimensions
	dimensions   int
	Domains      int
	spreads      []spreadDimension
	antiAffinity []antiAffinityDimension

	Assignment []assignmentStep // how pods were divided among zones: an order that the rules allow
}

// antiAffinityDimension is a dimension of anti-affinity on hosts: where it is in a size, and its room.
type antiAffinityDimension struct {
	at   int
	room int64
}

// spreadDimension is a dimension of spread over hosts: its index in a size, a class that has the spread, and its maxSkew.
type spreadDimension struct{ at, rep, skew int }

// The order of placing: first the pods whose rule looks at numbers, while the numbers are
// still as planned; last the pods that only the rules of others look at.
const (
	RankHosts        int8 = iota // spread over hosts
	RankZones                    // spread over zones, which counts what is spread over hosts as well
	rankAffinity                 // affinity
	rankAntiAffinity             // anti-affinity and volumes
	RankFree
)

// Constraints looks for constraints among the pending pods. Most rounds have none, and then
// nothing is built.
func Constraints(w *round.State) *Topology {
	if !mayBeConstrained(w) {
		return nil
	}
	b := &Topology{w: w, State: w.NewState(), Constrained: make([]bool, len(w.Snapshot.Classes))}
	any := false
	for i := range w.Demands {
		class := w.Demands[i].Class
		b.Constrained[class] = b.State.Constrained(class)
		any = any || b.Constrained[class]
	}
	if !any {
		return nil
	}
	b.reachable = make([][]int8, len(w.Snapshot.Classes))
	b.numberDomains(nil)
	return b
}

// Compile is Constraints turned into what a packer understands: the demands are divided among zones.
func Compile(w *round.State) *Topology {
	b := Constraints(w)
	if b == nil {
		return nil
	}
	b.Rank = make([]int8, len(w.Snapshot.Classes))
	for i := range b.Rank {
		b.Rank[i] = rankOf(&w.Snapshot.Classes[i])
	}
	b.assignZones()
	for i := range w.Demands {
		k := &w.Demands[i]
		k.PerPod = k.PerPod || slices.ContainsFunc(w.Snapshot.Classes[k.Class].Volumes, func(v cluster.Volume) bool { return v.OnePod })
	}
	b.addDimensions()
	b.balance()
	return b
}

// mayBeConstrained tells whether a pending pod asks for anything of other pods or of volumes, or
// whether some pod keeps others away.
func mayBeConstrained(w *round.State) bool {
	for i := range w.Demands {
		c := &w.Snapshot.Classes[w.Demands[i].Class]
		if len(c.PodAffinity)+len(c.PodAntiAffinity)+len(c.Spread)+len(c.Volumes) > 0 {
			return true
		}
	}
	return slices.ContainsFunc(w.Snapshot.Classes, func(c cluster.PodClass) bool { return len(c.PodAntiAffinity) > 0 })
}

func rankOf(c *cluster.PodClass) int8 {
	rank := RankFree
	if len(c.PodAntiAffinity)+len(c.Volumes) > 0 {
		rank = rankAntiAffinity
	}
	if len(c.PodAffinity) > 0 {
		rank = rankAffinity
	}
	for i := range c.Spread {
		if c.Spread[i].TopologyKey != KeyHostname {
			return RankZones
		}
		rank = RankHosts
	}
	return rank
}

// Reachable tells whether a class's volumes can be had on a group's machine, and whether
// the machine says where it stands in every domain that the class's own terms name.
func (b *Topology) Reachable(class, g int) bool {
	if !b.Constrained[class] {
		return true
	}
	if b.reachable[class] == nil {
		b.reachable[class] = make([]int8, len(b.w.Groups))
	}
	known := &b.reachable[class][g]
	if *known == 0 {
		*known = -1
		c := &b.w.Snapshot.Classes[class]
		_, shape := b.w.Template(&b.w.Groups[g])
		if b.UnknownDomain(class, shape) == "" && (len(c.Volumes) == 0 || b.hasVolumes(class, shape)) {
			*known = 1
		}
	}
	return *known == 1
}

// hasVolumes tells whether a class's volumes can be had on a machine.
func (b *Topology) hasVolumes(class int, shape *fit.NodeInfo) bool {
	if b.volumes == nil {
		everyKey := func(string) bool { return true }
		b.volumes = b.State.Within(fit.Scope{Without: everyKey, NoLimits: true})
	}
	mark := b.volumes.Mark()
	defer b.volumes.Rollback(mark)
	return b.volumes.Passes(class, b.volumes.AddNode(shape, nil))
}

// topologyKeys are the topology keys of a class's required terms, each once, in one string.
func topologyKeys(c *cluster.PodClass) string {
	var keys []string
	fit.TopologyKeys(c, func(key string) { keys = append(keys, key) })
	slices.Sort(keys)
	return strings.Join(slices.Compact(keys), " ")
}

// numberDomains numbers the domains: groups and nodes of one domain carry the same values of every
// topology key that is in use, hostname aside.
func (b *Topology) numberDomains(keys []string) (cells int) {
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
	b.GroupDomain, b.NodeDomain = make([]int, len(w.Groups)), make([]int, len(w.Nodes))
	for g := range w.Groups {
		b.GroupDomain[g] = of(w.Groups[g].Template.Labels)
	}
	for n := range w.Nodes {
		b.NodeDomain[n] = of(w.Nodes[n].Shape.Labels)
	}
	b.Domains = len(ids)
	return len(ids)
}

// AllowsGroup tells whether a demand may go on a group's machines as far as its domain and its
// volumes are concerned.
func (b *Topology) AllowsGroup(k *round.Demand, g int) bool {
	if b == nil {
		return true
	}
	return !k.PerPod && (k.Domain == 0 || k.Domain == b.GroupDomain[g]) && b.Reachable(k.Class, g)
}

// NodeFilter tells on which nodes of its domain pods of a class may go. Terms on zones do not count: a spread that closes
// a zone now opens it when other pods of the round run elsewhere, and the zone assignment has held them.
func (b *Topology) NodeFilter(class int) fit.NodeFilter {
	if b == nil || !b.Constrained[class] {
		return fit.NodeFilter{}
	}
	return b.hosts.NodeFilter(class)
}

// UnknownDomain is fit's; nil: no class is constrained.
func (b *Topology) UnknownDomain(class int, shape *fit.NodeInfo) string {
	if b == nil {
		return ""
	}
	return b.State.UnknownDomain(class, shape)
}

// RefusedAs says in the scheduler's words why one more pod of a class could not go onto one more machine of a group, if it
// has this shape.
func (b *Topology) RefusedAs(class int, g *round.Group, shape *fit.NodeInfo) (rule, words string) {
	if b == nil || !b.Constrained[class] {
		return "", ""
	}
	mark := b.State.Mark()
	defer b.State.Rollback(mark)
	rule, words = b.State.Refused(class, b.State.AddNode(shape, g.Template.VolumeLimits))
	if unknown := b.UnknownDomain(class, shape); words == "" && unknown != "" {
		return fit.RuleInterPod, "the group's template says nothing about " + unknown
	}
	return rule, words
}

// DomainOf is the domain that a place is in.
func (b *Topology) DomainOf(node, group int) int {
	if node < 0 {
		return b.GroupDomain[group]
	}
	return b.NodeDomain[node]
}

// Size is the vector of a class with the dimensions of hosts.
func (b *Topology) Size(class int) []int64 {
	if b.sizes == nil {
		return b.w.Dimensions.Class(class)
	}
	return b.sizes[class]
}

// HostSpread are the dimensions of spread over hosts that a group's machines can be raised on.
func (b *Topology) HostSpread(g int) *binpack.HostSpread {
	if b == nil || len(b.spreads) == 0 {
		return nil
	}
	lv := &binpack.HostSpread{}
	mark := b.hosts.Mark()
	_, shape := b.w.Template(&b.w.Groups[g])
	node := b.hosts.AddNode(shape, nil)
	for _, x := range b.spreads {
		most := b.hosts.MaxFit(x.rep, node)
		if most < math.MaxInt32 {
			most -= x.skew
		} else {
			most = math.MaxInt
		}
		lv.Dims, lv.Most = append(lv.Dims, x.at), append(lv.Most, max(most, 0))
	}
	b.hosts.Rollback(mark)
	return lv
}
