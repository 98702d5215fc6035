package schedsim

import (
	"maps"
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// naive is a cluster whose nodes are scored one by one, by all pods of all nodes, as kube-scheduler's plugins are written.
type naive struct {
	cfg    *Config
	nodes  []Node
	pods   []naivePod
	labels map[string]map[string]string // of namespaces
}

type naivePod struct {
	class, node int
	terminating bool
}

func (w *naive) class(i int) *cluster.PodClass { return &w.cfg.Classes[i] }

// feasible are the nodes that pass the filters for one more pod of a class.
func (w *naive) feasible(class int) (out []int) {
	st := fit.NewState(w.cfg.Classes, w.cfg.Namespaces)
	for i := range w.nodes {
		st.AddNode(w.nodes[i].Info, w.nodes[i].VolumeLimits)
	}
	for _, p := range w.pods {
		if p.terminating {
			st.PutTerminating(p.class, p.node, 1)
		} else {
			st.Put(p.class, p.node, 1)
		}
	}
	for i := range w.nodes {
		n := &w.nodes[i]
		if binpack.Fits(n.Room, w.cfg.Dimensions.Class(class)) && fit.Passes(w.class(class), n.Info) && st.UnknownDomain(class, n.Info) == "" && st.Passes(class, i) {
			out = append(out, i)
		}
	}
	return out
}

// best are the nodes with the highest score.
func (w *naive) best(class int) (best []int) {
	nodes := w.feasible(class)
	total := make([]int64, len(nodes))
	add := func(weight int64, scores []int64) {
		for i := range scores {
			total[i] += weight * scores[i]
		}
	}
	each := func(score func(n *Node) int64) (out []int64) {
		for _, i := range nodes {
			out = append(out, score(&w.nodes[i]))
		}
		return out
	}
	add(1, w.least(class, nodes))
	add(1, w.balanced(class, nodes))
	add(3, normalised(each(func(n *Node) int64 { return int64(fit.Unpreferred(w.class(class), n.Info)) }), true))
	add(2, normalised(each(func(n *Node) (sum int64) {
		if p := w.class(class).Prefers; p != nil {
			for i := range p.Nodes {
				if fit.MatchesTerm(&p.Nodes[i].Term, n.Info) {
					sum += p.Nodes[i].Weight
				}
			}
		}
		return sum
	}), false))
	add(2, w.spread(class, nodes))
	add(2, w.inter(class, nodes))
	for i, n := range nodes {
		if total[i] == slices.Max(total) {
			best = append(best, n)
		}
	}
	return best
}

// normalised is DefaultNormalizeScore.
func normalised(scores []int64, reverse bool) []int64 {
	most := slices.Max(append([]int64{0}, scores...))
	for i := range scores {
		if most > 0 {
			scores[i] = 100 * scores[i] / most
		}
		if reverse {
			scores[i] = 100 - scores[i]
		}
	}
	return scores
}

// nonZero are the requests of a placed pod and of an incoming one as LeastAllocated counts them.
func (w *naive) nonZero(class int) (placed, incoming [2]int64) {
	c := w.class(class)
	placed = [2]int64{c.Requests.MilliCPU, c.Requests.Memory}
	if p := c.Prefers; p != nil && p.MilliCPU+p.Memory > 0 {
		placed = [2]int64{p.MilliCPU, p.Memory}
	}
	incoming = placed
	if p := c.Prefers; p != nil && p.IncomingMilliCPU+p.IncomingMemory > 0 {
		incoming = [2]int64{p.IncomingMilliCPU, p.IncomingMemory}
	}
	return placed, incoming
}

func (w *naive) least(class int, nodes []int) (out []int64) {
	_, incoming := w.nonZero(class)
	for _, at := range nodes {
		n, sum, weights := &w.nodes[at], int64(0), int64(0)
		has, room := [2]int64{n.Allocatable.MilliCPU, n.Allocatable.Memory}, n.Room
		for d := range has {
			if has[d] == 0 {
				continue
			}
			used := has[d] - room[d] + incoming[d]
			for _, p := range w.pods {
				if placed, _ := w.nonZero(p.class); p.node == at {
					used += placed[d] - w.cfg.Dimensions.Class(p.class)[d]
				}
			}
			weights++
			if used <= has[d] {
				sum += (has[d] - used) * 100 / has[d]
			}
		}
		out = append(out, sum/max(weights, 1))
	}
	return out
}

func (w *naive) balanced(class int, nodes []int) (out []int64) {
	ask := w.cfg.Dimensions.Class(class)
	for _, at := range nodes {
		n := &w.nodes[at]
		even := func(cpu, memory int64) int64 {
			if n.Allocatable.MilliCPU == 0 || n.Allocatable.Memory == 0 { // one resource is even with itself
				return 100
			}
			a, b := min(float64(cpu)/float64(n.Allocatable.MilliCPU), 1), min(float64(memory)/float64(n.Allocatable.Memory), 1)
			return int64((1 - math.Abs((a-b)/2)) * 100)
		}
		cpu, memory := n.Allocatable.MilliCPU-n.Room[0], n.Allocatable.Memory-n.Room[1]
		if ask[0]+ask[1] == 0 { // the plugin skips pods of the best effort
			out = append(out, 0)
			continue
		}
		out = append(out, 50+(50+even(cpu+ask[0], memory+ask[1])-even(cpu, memory))/2)
	}
	return out
}

// domain is the value of a key on a node. A template gets a hostname of its own.
func domain(n *Node, key string) (string, bool) {
	v, has := n.Info.Labels[key]
	return v, has || key == labelHostname && n.Info.Name == ""
}

// soft are the ScheduleAnyway constraints of a class, and whether they are its own.
func (w *naive) soft(class int) (list []cluster.Spread, own bool) {
	c := w.class(class)
	if c.Prefers != nil && len(c.Prefers.Spread) > 0 {
		return c.Prefers.Spread, true
	}
	if len(c.Spread) > 0 || !w.cfg.Replicated[class] || len(c.Labels) == 0 {
		return nil, false
	}
	sel := &cluster.Selector{}
	for _, k := range slices.Sorted(maps.Keys(c.Labels)) {
		sel.Requirements = append(sel.Requirements, cluster.Requirement{Key: k, Operator: "In", Values: []string{c.Labels[k]}})
	}
	return []cluster.Spread{{TopologyKey: labelHostname, MaxSkew: 3, Selector: sel}, {TopologyKey: labelZone, MaxSkew: 5, Selector: sel}}, false
}

// matching is how many pods on a node a constraint counts.
func (w *naive) matching(class, at int, x *cluster.Spread) (n int64) {
	for _, p := range w.pods {
		c := w.class(p.class)
		if p.node == at && !p.terminating && c.Namespace == w.class(class).Namespace && x.Selector != nil && len(x.Selector.Requirements) > 0 && fit.Selects(x.Selector, c.Labels) {
			n++
		}
	}
	return n
}

func (w *naive) spread(class int, nodes []int) []int64 {
	out := make([]int64, len(nodes))
	constraints, own := w.soft(class)
	if len(constraints) == 0 {
		return out
	}
	hasAll := func(n *Node) bool {
		return !own || !slices.ContainsFunc(constraints, func(x cluster.Spread) bool { _, has := domain(n, x.TopologyKey); return !has })
	}
	sums := make([]float64, len(nodes))
	for k := range constraints {
		x := &constraints[k]
		counts, domains, scored := map[string]int64{}, map[string]bool{}, 0
		for i := range w.nodes {
			n := &w.nodes[i]
			v, has := domain(n, x.TopologyKey)
			if has && hasAll(n) && (x.IgnoreNodeAffinity || fit.Selected(w.class(class), n.Info)) && (!x.HonorTaints || fit.ToleratesAll(w.class(class), n.Info)) {
				counts[v] += w.matching(class, i, x)
			}
		}
		for _, i := range nodes {
			if v, has := domain(&w.nodes[i], x.TopologyKey); hasAll(&w.nodes[i]) {
				scored++
				domains[map[bool]string{true: "=" + v}[has]] = true
			}
		}
		size := len(domains)
		if x.TopologyKey == labelHostname {
			size = scored
		}
		for i, at := range nodes {
			v, has := domain(&w.nodes[at], x.TopologyKey)
			if !has {
				continue
			}
			n := counts[v]
			if x.TopologyKey == labelHostname {
				n = w.matching(class, at, x)
			}
			sums[i] += float64(n)*math.Log(float64(size+2)) + float64(x.MaxSkew-1)
		}
	}
	least, most := int64(math.MaxInt64), int64(0)
	for i, at := range nodes {
		if out[i] = int64(math.Round(sums[i])); hasAll(&w.nodes[at]) {
			least, most = min(least, out[i]), max(most, out[i])
		}
	}
	for i, at := range nodes {
		switch {
		case !hasAll(&w.nodes[at]):
			out[i] = 0
		case most == 0:
			out[i] = 100
		default:
			out[i] = 100 * (most + least - out[i]) / most
		}
	}
	return out
}

func (w *naive) inter(class int, nodes []int) []int64 {
	out := make([]int64, len(nodes))
	// near adds a weight to the nodes in the domain of a pod.
	near := func(pod int, key string, weight int64) {
		from := w.pods[pod].node
		v, has := domain(&w.nodes[from], key)
		for i, at := range nodes {
			if o, is := domain(&w.nodes[at], key); has && is && o == v && (key != labelHostname || at == from) {
				out[i] += weight
			}
		}
	}
	c := w.class(class)
	for i := range w.pods {
		o := w.class(w.pods[i].class)
		ask := func(t *cluster.PodTerm, of *cluster.PodClass, existing bool, weight int64) {
			if m := fit.NewTermMatcher(t, w.labels); m.Takes(of, existing) {
				near(i, t.TopologyKey, weight)
			}
		}
		if c.Prefers != nil {
			for k := range c.Prefers.Pods {
				ask(&c.Prefers.Pods[k].Term, o, false, c.Prefers.Pods[k].Weight)
			}
		}
		for k := range o.PodAffinity {
			ask(&o.PodAffinity[k], c, true, 1)
		}
		if o.Prefers != nil {
			for k := range o.Prefers.Pods {
				ask(&o.Prefers.Pods[k].Term, c, true, o.Prefers.Pods[k].Weight)
			}
		}
	}
	if len(nodes) == 0 {
		return out
	}
	least, most := slices.Min(out), slices.Max(out)
	for i := range out {
		if most > least {
			out[i] = int64(100 * (float64(out[i]-least) / float64(most-least)))
		} else {
			out[i] = 0
		}
	}
	return out
}
