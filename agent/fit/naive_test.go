package fit

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// naive judges from nothing each time, in the words of kube-scheduler 1.36's source:
// maps of topology pairs, every pod on every node. It shares no code with State but
// the shape filters that spread's node policies call.
type naive struct {
	classes    []cluster.PodClass
	namespaces map[string]map[string]string
	nodes      []naiveNode
	pods       []naivePod
}

type naiveNode struct {
	shape  *NodeInfo
	labels map[string]string // with a template's own hostname
	limits map[string]int64
}

type naivePod struct {
	class, node int
	leaving     bool
}

type pair struct{ key, value string }

func naiveNodeOf(shape *NodeInfo, limits map[string]int64, index int) naiveNode {
	n := naiveNode{shape: shape, labels: shape.Labels, limits: limits}
	if shape.Name == "" {
		n.labels = map[string]string{}
		for k, v := range shape.Labels {
			n.labels[k] = v
		}
		n.labels["kubernetes.io/hostname"] = "template-" + strconv.Itoa(index)
	}
	return n
}

func (w *naive) matches(sel *cluster.Selector, labels map[string]string) bool {
	if sel == nil {
		return false
	}
	for _, r := range sel.Requirements {
		v, has := labels[r.Key]
		in := has && slices.Contains(r.Values, v)
		switch r.Operator {
		case "In":
			if !in {
				return false
			}
		case "NotIn":
			if in {
				return false
			}
		case "Exists":
			if !has {
				return false
			}
		case "DoesNotExist":
			if has {
				return false
			}
		}
	}
	return true
}

// term is AffinityTerm.Matches after mergeAffinityTermNamespacesIfNotEmpty when the
// term is the incoming pod's. That function means to empty the namespaceSelector, and
// does not.
func (w *naive) term(owner *cluster.PodClass, t *cluster.PodTerm, target *cluster.PodClass, incoming bool) bool {
	names := slices.Clone(t.Namespaces)
	wide := t.NamespaceSelector
	if len(names) == 0 && wide == nil {
		names = []string{owner.Namespace}
	}
	labels := w.namespaces[target.Namespace]
	if incoming && wide != nil && len(wide.Requirements) > 0 {
		for name, l := range w.namespaces {
			if w.matches(wide, l) {
				names = append(names, name)
			}
		}
	}
	if incoming {
		labels = nil
	}
	return (slices.Contains(names, target.Namespace) || w.matches(wide, labels)) && w.matches(t.Selector, target.Labels)
}

func (w *naive) all(owner *cluster.PodClass, target *cluster.PodClass) bool {
	for i := range owner.PodAffinity {
		if !w.term(owner, &owner.PodAffinity[i], target, true) {
			return false
		}
	}
	return len(owner.PodAffinity) > 0
}

func (w *naive) interPod(c *cluster.PodClass, node *naiveNode) string {
	affinity, anti, existing := map[pair]int{}, map[pair]int{}, map[pair]int{}
	count := func(m map[pair]int, on *naiveNode, key string) {
		if v, ok := on.labels[key]; ok {
			m[pair{key, v}]++
		}
	}
	for _, p := range w.pods {
		there, on := &w.classes[p.class], &w.nodes[p.node]
		for i := range there.PodAntiAffinity {
			if w.term(there, &there.PodAntiAffinity[i], c, false) {
				count(existing, on, there.PodAntiAffinity[i].TopologyKey)
			}
		}
		if w.all(c, there) {
			for _, t := range c.PodAffinity {
				count(affinity, on, t.TopologyKey)
			}
		}
		for i := range c.PodAntiAffinity {
			if w.term(c, &c.PodAntiAffinity[i], there, true) {
				count(anti, on, c.PodAntiAffinity[i].TopologyKey)
			}
		}
	}
	exist := true
	for _, t := range c.PodAffinity {
		v, ok := node.labels[t.TopologyKey]
		if !ok {
			return "node(s) didn't match pod affinity rules"
		}
		exist = exist && affinity[pair{t.TopologyKey, v}] > 0
	}
	if !exist && (len(affinity) > 0 || !w.all(c, c)) {
		return "node(s) didn't match pod affinity rules"
	}
	for _, t := range c.PodAntiAffinity {
		if v, ok := node.labels[t.TopologyKey]; ok && anti[pair{t.TopologyKey, v}] > 0 {
			return "node(s) didn't match pod anti-affinity rules"
		}
	}
	for k, v := range node.labels {
		if existing[pair{k, v}] > 0 {
			return "node(s) didn't satisfy existing pods anti-affinity rules"
		}
	}
	return ""
}

func (w *naive) spread(c *cluster.PodClass, node *naiveNode) string {
	for _, t := range c.Spread {
		value, ok := node.labels[t.TopologyKey]
		if !ok {
			return "node(s) didn't match pod topology spread constraints (missing required label)"
		}
		counts := map[string]int{}
		for n := range w.nodes {
			on := &w.nodes[n]
			if slices.ContainsFunc(c.Spread, func(o cluster.Spread) bool { _, has := on.labels[o.TopologyKey]; return !has }) ||
				!t.IgnoreNodeAffinity && !selected(c, on.shape) || t.HonorTaints && !toleratesAll(c, on.shape) {
				continue
			}
			counts[on.labels[t.TopologyKey]] += 0
			for _, p := range w.pods {
				there := &w.classes[p.class]
				if t.Selector != nil && len(t.Selector.Requirements) > 0 && p.node == n && !p.leaving && there.Namespace == c.Namespace && w.matches(t.Selector, there.Labels) {
					counts[on.labels[t.TopologyKey]]++
				}
			}
		}
		least := math.MaxInt32
		for _, n := range counts {
			least = min(least, n)
		}
		if len(counts) < max(t.MinDomains, 1) {
			least = 0
		}
		self := 0
		if w.matches(t.Selector, c.Labels) {
			self = 1
		}
		if counts[value]+self-least > t.MaxSkew {
			return "node(s) didn't match pod topology spread constraints"
		}
	}
	return ""
}

func (w *naive) limits(c *cluster.PodClass, node int) string {
	attached, fresh := map[[2]string]bool{}, map[[2]string]bool{}
	for _, p := range w.pods {
		for _, v := range w.classes[p.class].Volumes {
			if p.node == node && v.Driver != "" && v.Handle != "" {
				attached[[2]string{v.Driver, v.Handle}] = true
			}
		}
	}
	for _, v := range c.Volumes {
		if k := [2]string{v.Driver, v.Handle}; v.Driver != "" && v.Handle != "" && !attached[k] {
			fresh[k] = true
		}
	}
	for k := range fresh {
		limit, limited := w.nodes[node].limits[k[0]]
		n := int64(0)
		for o := range fresh {
			if o[0] == k[0] {
				n++
			}
		}
		for o := range attached {
			if o[0] == k[0] {
				n++
			}
		}
		if limited && n > limit {
			return "node(s) exceed max volume count"
		}
	}
	return ""
}

func (w *naive) onePod(c *cluster.PodClass) string {
	for _, v := range c.Volumes {
		for _, p := range w.pods {
			for _, o := range w.classes[p.class].Volumes {
				if v.OnePod && v.Claim != "" && o.Claim == v.Claim {
					return "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
				}
			}
		}
	}
	return ""
}

// nodeTerms is a node selector over labels alone, each requirement In or Exists.
func (w *naive) nodeTerms(terms []cluster.NodeTerm, labels map[string]string) bool {
	if terms == nil {
		return true
	}
	for _, t := range terms {
		if len(t.Labels) > 0 && w.matches(&cluster.Selector{Requirements: t.Labels}, labels) {
			return true
		}
	}
	return false
}

func (w *naive) binding(c *cluster.PodClass, node *naiveNode) string {
	var words []string
	if slices.ContainsFunc(c.Volumes, func(v cluster.Volume) bool { return !w.nodeTerms(v.Affinity, node.shape.Labels) }) {
		words = append(words, "node(s) didn't match PersistentVolume's node affinity")
	}
	if slices.ContainsFunc(c.Volumes, func(v cluster.Volume) bool { return !w.nodeTerms(v.Topologies, node.shape.Labels) }) {
		words = append(words, "node(s) didn't find available persistent volumes to bind")
	}
	return strings.Join(words, ", ")
}

func (w *naive) zone(c *cluster.PodClass, node *naiveNode) string {
	const beta, ga = "failure-domain.beta.kubernetes.io/", "topology.kubernetes.io/"
	has := false
	for _, k := range []string{beta + "zone", beta + "region", ga + "zone", ga + "region"} {
		_, ok := node.labels[k]
		has = has || ok
	}
	for _, v := range c.Volumes {
		for _, z := range v.Zones {
			value, ok := node.labels[z.Key]
			if !ok {
				value, ok = node.labels[strings.Replace(z.Key, beta, ga, 1)]
			}
			if has && (!ok || !slices.Contains(strings.Split(strings.Join(z.Values, "__"), "__"), value)) {
				return "node(s) had no available volume zone"
			}
		}
	}
	return ""
}

func (w *naive) refused(class, node int) (rule, words string) {
	c, n := &w.classes[class], &w.nodes[node]
	for _, v := range c.Volumes {
		if v.Refused != "" {
			return "F9", v.Refused
		}
	}
	for _, f := range []struct{ rule, words string }{
		{"F7", w.onePod(c)}, {"F8", w.limits(c, node)}, {"F9", w.binding(c, n)}, {"F10", w.zone(c, n)}, {"F11", w.spread(c, n)}, {"F12", w.interPod(c, n)},
	} {
		if f.words != "" {
			return f.rule, f.words
		}
	}
	return "", ""
}

// most places pods until one is refused.
func (w *naive) most(class, node, enough int) int {
	pods := w.pods
	defer func() { w.pods = pods }()
	for n := range enough {
		if rule, _ := w.refused(class, node); rule != "" {
			return n
		}
		w.pods = append(w.pods, naivePod{class: class, node: node})
	}
	return enough
}
