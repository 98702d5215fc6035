package schedsim

import (
	"maps"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

const (
	labelHostname = "kubernetes.io/hostname"
	labelZone     = "topology.kubernetes.io/zone"
)

// systemSpread are the constraints that PodTopologySpread gives to the pods of a workload
// that have none of their own (defaultingType System).
var systemSpread = []cluster.Spread{{TopologyKey: labelHostname, MaxSkew: 3}, {TopologyKey: labelZone, MaxSkew: 5}}

// tables lists what the classes ask and count, worked out once.
type tables struct {
	keys          []string // topology keys without hostname
	selections    []selection
	counters      []domainCounter
	eligibilities []eligibility
	interCounters []interCounter
	reads         []reads       // per class; of those that are bound only
	more          []defaults    // per class, what a placed pod counts beyond its requests
	asks          []defaults    // per class, what an incoming pod counts
	increments    []*increments // per class; nil until asked
	bySelector    labelIndex    // selections
	byTerm        labelIndex    // terms that count the pods they select
	terms         []countedTerm
	owned         map[string]int32 // inter counters of owners, by term
	known         map[string]map[string]string
	cfg           *Config
}

// selection tells which pods a soft spread constraint counts.
type selection struct {
	namespace string
	selector  *cluster.Selector
	counters  []int32 // domain counters that count it
}

// domainCounter counts a selection per domain of a key, on eligible nodes.
type domainCounter struct{ key, eligibility int32 }

// eligibility is where the pods of a domain are counted for a class.
type eligibility struct {
	class            *cluster.PodClass
	affinity, taints bool
	keys             []int32 // that a node has to have
	hostname         bool    // hostname is one of them
}

func (e *eligibility) holds(h *shape) bool {
	for _, k := range e.keys {
		if h.domains[k] < 0 {
			return false
		}
	}
	return (!e.hostname || h.hostname) && (!e.affinity || fit.Selected(e.class, h.info)) && (!e.taints || fit.ToleratesAll(e.class, h.info))
}

// interCounter adds weights per domain of a key; key -1 is the hostname.
type interCounter struct{ key int32 }

type interCount struct {
	byDomain []int64
	perNode  nodeCounts
	pods     int
}

// reads lists the counters that a class's scores read.
type reads struct {
	spread   []softSpread
	all      bool // nodes that lack a key are not scored
	inter    []interRead
	affinity []cluster.PreferredNodes
}

type softSpread struct {
	selection, counter int32 // counter -1: hostname, by node
	key                int32
	maxSkew            int64
}

type interRead struct {
	counter int32
	weight  int64
}

type defaults struct{ cpu, memory int64 }

// increments lists the counters that count a pod of a class.
type increments struct {
	selections []int32
	inter      []interRead
}

type countedTerm struct {
	matcher fit.TermMatcher
	counter int32
}

// compile makes the tables of a Sim. It costs C, and T times the classes that a label index leaves for a term.
func compile(cfg *Config) *tables {
	n := len(cfg.Classes)
	t := &tables{cfg: cfg, reads: make([]reads, n), more: make([]defaults, n), asks: make([]defaults, n), increments: make([]*increments, n), owned: make(map[string]int32),
		known: make(map[string]map[string]string, len(cfg.Namespaces))}
	for _, x := range cfg.Namespaces {
		t.known[x.Name] = x.Labels
	}
	for i := range cfg.Classes {
		r := &cfg.Classes[i].Requests
		t.asks[i] = defaults{r.MilliCPU, r.Memory}
		p := cfg.Classes[i].Prefers
		if p == nil {
			continue
		}
		if p.MilliCPU > 0 || p.Memory > 0 {
			t.asks[i] = defaults{p.MilliCPU, p.Memory}
			t.more[i] = defaults{p.MilliCPU - r.MilliCPU, p.Memory - r.Memory}
		}
		if p.IncomingMilliCPU > 0 || p.IncomingMemory > 0 {
			t.asks[i] = defaults{p.IncomingMilliCPU, p.IncomingMemory}
		}
	}
	popular := make(map[string]int)
	for _, c := range cfg.Binds {
		for k, v := range cfg.Classes[c].Labels {
			popular[k+"="+v]++
		}
	}
	t.bySelector.popular, t.byTerm.popular = popular, popular
	t.compileSpread()
	t.compileInter()
	return t
}

// compileSpread compiles the ScheduleAnyway constraints.
func (t *tables) compileSpread() {
	selections, counters, eligibilities := make(map[string]int32), make(map[[3]int32]int32), make(map[string]int32)
	for _, c := range t.cfg.Binds {
		class, r := &t.cfg.Classes[c], &t.reads[c]
		spread, selector := t.softOf(c)
		r.all = selector == nil
		elig := int32(-1)
		for _, x := range spread {
			sel := x.Selector
			if selector != nil {
				sel = selector
			}
			key := class.Namespace + "\x00" + fit.SelectorKey(sel)
			id, ok := selections[key]
			if !ok {
				id = int32(len(t.selections))
				selections[key] = id
				t.selections = append(t.selections, selection{namespace: class.Namespace, selector: sel})
				t.bySelector.add(id, sel)
			}
			soft := softSpread{selection: id, counter: -1, key: t.key(x.TopologyKey), maxSkew: int64(x.MaxSkew)}
			if soft.key >= 0 {
				elig = t.eligibility(eligibilities, class, &x, spread, r.all)
				at := [3]int32{id, soft.key, elig}
				if soft.counter, ok = counters[at]; !ok {
					soft.counter = int32(len(t.counters))
					counters[at] = soft.counter
					t.counters = append(t.counters, domainCounter{soft.key, elig})
					t.selections[id].counters = append(t.selections[id].counters, soft.counter)
				}
			}
			r.spread = append(r.spread, soft)
		}
	}
}

// softOf are the soft constraints of a class; with a selector where they are the system's.
func (t *tables) softOf(c int) ([]cluster.Spread, *cluster.Selector) {
	class := &t.cfg.Classes[c]
	if class.Prefers != nil && len(class.Prefers.Spread) > 0 {
		return class.Prefers.Spread, nil
	}
	if len(class.Spread) > 0 || t.cfg.Replicated == nil || !t.cfg.Replicated[c] || len(class.Labels) == 0 {
		return nil, nil
	}
	sel := &cluster.Selector{}
	for _, k := range slices.Sorted(maps.Keys(class.Labels)) {
		sel.Requirements = append(sel.Requirements, cluster.Requirement{Key: k, Operator: "In", Values: []string{class.Labels[k]}})
	}
	return systemSpread, sel
}

func (t *tables) eligibility(known map[string]int32, class *cluster.PodClass, x *cluster.Spread, all []cluster.Spread, strict bool) int32 {
	e := eligibility{class: class, affinity: !x.IgnoreNodeAffinity, taints: x.HonorTaints}
	key := fit.EligibilityKey(class, e.affinity, e.taints)
	if strict && len(all) > 1 {
		for i := range all {
			key += "\x00" + all[i].TopologyKey
			if k := t.key(all[i].TopologyKey); k < 0 {
				e.hostname = true
			} else {
				e.keys = append(e.keys, k)
			}
		}
	}
	if key == "" {
		return -1
	}
	id, ok := known[key]
	if !ok {
		id = int32(len(t.eligibilities))
		known[key] = id
		t.eligibilities = append(t.eligibilities, e)
	}
	return id
}

// key numbers a topology key; -1 is the hostname.
func (t *tables) key(name string) int32 {
	if name == labelHostname {
		return -1
	}
	at := slices.Index(t.keys, name)
	if at < 0 {
		at = len(t.keys)
		t.keys = append(t.keys, name)
	}
	return int32(at)
}

// compileInter compiles the preferred terms of the classes that are bound, and the terms of
// all classes that select these. It costs the pairs of terms and classes that share a label
// which the term asks for.
func (t *tables) compileInter() {
	counted := make(map[string]int32)
	for _, c := range t.cfg.Binds {
		class := &t.cfg.Classes[c]
		if class.Prefers == nil {
			continue
		}
		t.reads[c].affinity = class.Prefers.Nodes
		for i := range class.Prefers.Pods {
			p := &class.Prefers.Pods[i]
			m := fit.NewTermMatcher(&p.Term, t.known)
			key := p.Term.TopologyKey + "\x00" + m.Key()
			id, ok := counted[key]
			if !ok {
				id = t.interCounter(p.Term.TopologyKey)
				counted[key] = id
				t.byTerm.add(int32(len(t.terms)), p.Term.Selector)
				t.terms = append(t.terms, countedTerm{m, id})
			}
			t.reads[c].inter = append(t.reads[c].inter, interRead{id, p.Weight})
		}
	}
	for i := range t.cfg.Classes {
		class := &t.cfg.Classes[i]
		for k := range class.PodAffinity {
			t.ownTerm(&class.PodAffinity[k])
		}
		for k := 0; class.Prefers != nil && k < len(class.Prefers.Pods); k++ {
			t.ownTerm(&class.Prefers.Pods[k].Term)
		}
	}
}

// ownTerm lets the classes that a term selects read its owners.
func (t *tables) ownTerm(term *cluster.PodTerm) {
	m := fit.NewTermMatcher(term, t.known)
	key := term.TopologyKey + "\x00" + m.Key()
	if _, known := t.owned[key]; known {
		return
	}
	id := int32(-1)
	for _, c := range t.cfg.Binds {
		if m.Takes(&t.cfg.Classes[c], true) {
			if id < 0 {
				id = t.interCounter(term.TopologyKey)
			}
			t.reads[c].inter = append(t.reads[c].inter, interRead{id, 1})
		}
	}
	t.owned[key] = id
}

func (t *tables) interCounter(key string) int32 {
	t.interCounters = append(t.interCounters, interCounter{t.key(key)})
	return int32(len(t.interCounters) - 1)
}

// incrementsOf lists the counters that count a pod of a class, worked out when it is first asked for.
func (t *tables) incrementsOf(class int) *increments {
	if inc := t.increments[class]; inc != nil {
		return inc
	}
	c, inc := &t.cfg.Classes[class], &increments{}
	t.increments[class] = inc
	t.bySelector.each(c.Labels, func(id int32) {
		sel := &t.selections[id]
		// countPodsMatchSelector counts no pod by an empty selector.
		if sel.namespace == c.Namespace && len(sel.selector.Requirements) > 0 && fit.Selects(sel.selector, c.Labels) {
			inc.selections = append(inc.selections, id)
		}
	})
	t.byTerm.each(c.Labels, func(id int32) {
		if x := &t.terms[id]; x.matcher.Takes(c, false) {
			inc.inter = append(inc.inter, interRead{x.counter, 1})
		}
	})
	own := func(term *cluster.PodTerm, weight int64) {
		m := fit.NewTermMatcher(term, t.known)
		if id := t.owned[term.TopologyKey+"\x00"+m.Key()]; id >= 0 {
			inc.inter = append(inc.inter, interRead{id, weight})
		}
	}
	for i := range c.PodAffinity {
		own(&c.PodAffinity[i], 1) // hardPodAffinityWeight
	}
	for i := 0; c.Prefers != nil && i < len(c.Prefers.Pods); i++ {
		own(&c.Prefers.Pods[i].Term, c.Prefers.Pods[i].Weight)
	}
	return inc
}

// labelIndex finds selectors by a label that they ask for.
type labelIndex struct {
	popular map[string]int // how many classes have a label
	by      map[string][]int32
	rest    []int32
}

// add files a selector under the requirement with the fewest classes.
func (x *labelIndex) add(id int32, sel *cluster.Selector) {
	if sel == nil {
		return // selects nothing
	}
	var best *cluster.Requirement
	least := 0
	for i := range sel.Requirements {
		r := &sel.Requirements[i]
		if r.Operator != "In" {
			continue
		}
		n := 0
		for _, v := range r.Values {
			n += x.popular[r.Key+"="+v]
		}
		if best == nil || n < least {
			best, least = r, n
		}
	}
	if best == nil {
		x.rest = append(x.rest, id)
		return
	}
	if x.by == nil {
		x.by = make(map[string][]int32)
	}
	for _, v := range best.Values {
		x.by[best.Key+"="+v] = append(x.by[best.Key+"="+v], id)
	}
}

// each calls f with the selectors that may select labels, in the order of their numbers
// within each label.
func (x *labelIndex) each(labels map[string]string, f func(id int32)) {
	for _, id := range x.rest {
		f(id)
	}
	if len(x.by) == 0 {
		return
	}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		for _, id := range x.by[k+"="+labels[k]] {
			f(id)
		}
	}
}
