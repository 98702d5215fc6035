// Package sureplaces tells which places are open to evicted pods with topology spread, pod affinity or volumes, wherever
// kube-scheduler puts the other evicted pods and in whichever order they come: Begin, then Leaves and Come, then Constrain. Package
// certain asks it beside room.
//
// A node that is emptied is, until its Node object is gone, a domain that holds none, some or all of its pods; afterwards it is none. An
// answer holds for each of these moments. It says no in some worlds in which all pods would be bound. It refuses to know room, and to
// try a placing.
package sureplaces

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/certain"
)

const keyHostname = "kubernetes.io/hostname"

// mostSets bounds the sets of places of one class of pods, one for each choice of the others: see certain.Load.
const mostSets = 12

// Move are pods that leave nodes, and machines that come.
type Move struct {
	state   *fit.State
	classes []cluster.PodClass
	mark    int
	nodes   int         // of the state, without machines that come
	leaving map[int]int // by class, the pods on the nodes that go
	coming  []int       // machines that come, as nodes of the state
}

// Begin begins with a state of so many nodes as they are now. The state is changed until End.
func Begin(st *fit.State, classes []cluster.PodClass, nodes int) *Move {
	return &Move{state: st, classes: classes, mark: st.Mark(), nodes: nodes, leaving: map[int]int{}}
}

// End makes the state what it was.
func (m *Move) End() { m.state.Rollback(m.mark) }

// Leaves tells that a node goes, with its pods and its shape until then: cordoned, where it is before the first pod is evicted.
func (m *Move) Leaves(node int, pods []cluster.Pod, shape *fit.NodeInfo) {
	for i := range pods {
		switch pod := &pods[i]; {
		case pod.Finished:
			continue
		case pod.Deleting.IsZero():
			m.state.Put(pod.Class, node, -1)
		default:
			m.state.PutTerminating(pod.Class, node, -1)
		}
		m.leaving[pods[i].Class]++
	}
	m.state.Reshape(node, shape)
}

// Come tells that machines come before the first pod is evicted.
func (m *Move) Come(shape *fit.NodeInfo, volumeLimits map[string]int64, n int) {
	for range n {
		m.coming = append(m.coming, m.state.AddNode(shape, volumeLimits))
	}
}

// Constrain narrows loads, which are pods of one class each, to the places that are open to them for sure. The places are nodes of the
// state, and then the machines that come. It tells whether there may be any for each load. It costs the terms of the classes times the
// loads, and the nodes for each spread over anything but hosts, which it pays with looks.
func (m *Move) Constrain(loads []certain.Load, classes, places []int, look func(n int) bool) bool {
	places = append(slices.Clip(places), m.coming...)
	for i, class := range classes {
		if !m.state.Constrained(class) {
			continue
		}
		c := &load{Move: m, class: class, places: places}
		if !look(m.nodes) || !c.compile(loads, classes) {
			return false
		}
		loads[i].Sure, loads[i].Against = c.sets(), c.against
	}
	return true
}

// load is what keeps the pods of one class off places.
type load struct {
	*Move
	class   int
	places  []int
	terms   []term
	first   bool // it is the first of those that its affinity asks for, and comes wherever it wants
	against []certain.Against
	volumes map[string]int // by driver, the volumes of all pods that are evicted
}

// term is one demand of a class.
type term struct {
	fit.Term
	others int   // evicted pods that it counts, beside the pod itself
	fewest int   // of Spread: no more than the global minimum is at any time
	lowest []int // of Spread: domains of which one always has the global minimum
}

// compile tells whether there may be places for the load's pods.
func (c *load) compile(loads []certain.Load, classes []int) bool {
	c.compileVolumes(loads, classes)
	c.first = true
	for _, ft := range c.state.Terms(c.class) {
		t := term{Term: ft}
		for class, n := range c.leaving {
			if c.state.CountedBy(ft, class) {
				t.others += n
			}
		}
		if c.state.CountedBy(ft, c.class) {
			t.others--
		}
		c.first = c.first && (ft.Kind != fit.Affinity || ft.Self && t.others == 0 && c.state.Total(ft) == 0)
		if ft.Kind == fit.Spread && !c.compileSpread(&t) {
			return false
		}
		if ft.Kind != fit.Affinity && ft.Key == keyHostname && t.others > 0 {
			c.hostTerm(t, loads, classes)
			continue
		}
		if ft.Kind == fit.Spread && t.MinDomains <= 1 {
			t.lowest = c.lowest(&t)
		}
		c.terms = append(c.terms, t)
	}
	return true
}

// compileVolumes counts the volumes of the pods that are evicted. Of a claim for one pod there is no other user: the pod runs.
func (c *load) compileVolumes(loads []certain.Load, classes []int) {
	c.volumes = map[string]int{}
	for i, class := range classes {
		for _, v := range c.classes[class].Volumes {
			c.volumes[v.Driver] += loads[i].N
		}
	}
}

// compileSpread finds the least that the global minimum is: while all nodes that go are there and empty. A domain that goes with them
// counts 0 until then.
func (c *load) compileSpread(t *term) bool {
	if slices.ContainsFunc(c.coming, func(k int) bool { return c.state.DomainOf(t.Term, k) < 0 }) {
		return false // it may be a domain of its own
	}
	t.fewest = c.state.Fewest(t.Term)
	return true
}

// lowest are the domains of which one has the global minimum, wherever the other pods are: where none of those before a domain has it,
// each of them has at least one pod more than that domain.
func (c *load) lowest(t *term) (out []int) {
	var domains []int
	for node := range c.nodes + len(c.coming) {
		if c.state.Counts(t.Term, node) {
			domains = append(domains, c.state.DomainOf(t.Term, node))
		}
	}
	slices.Sort(domains)
	domains = slices.Compact(domains)
	count := func(domain int) int { return c.state.Count(t.Term, domain) }
	slices.SortStableFunc(domains, func(a, b int) int { return cmp.Compare(count(a), count(b)) })
	for i, d := range domains {
		missing := 0
		for _, lower := range domains[:i] {
			missing += count(d) + 1 - count(lower)
		}
		if missing > t.others {
			break
		}
		out = append(out, d)
	}
	return out
}

// hostTerm lets package certain count the other pods on each host, since a host is one place.
func (c *load) hostTerm(t term, loads []certain.Load, classes []int) {
	a := certain.Against{Counts: make([]int64, len(loads)), Most: func(place int) int64 { return int64(c.spare(&t, c.places[place])) }}
	for i, class := range classes {
		if c.state.CountedBy(t.Term, class) {
			a.Counts[i] = 1
		}
	}
	c.against = append(c.against, a)
}

// spare is how many others may be in a node's domain for the pod to be let in; -1: it is not let in.
func (c *load) spare(t *term, node int) int {
	domain := c.state.DomainOf(t.Term, node)
	switch {
	case domain < 0 && (t.Kind == fit.Spread || slices.Contains(c.coming, node)):
		return -1
	case domain < 0:
		return t.others
	}
	self := 0
	if t.SelfMatches {
		self = 1
	}
	return max(t.MaxSkew+t.fewest-c.state.Count(t.Term, domain)-self, -1)
}

// sets are the sets of places one of which is open: for each spread over anything but hosts, a domain with the global minimum is.
func (c *load) sets() []func(place int) bool {
	choices := [][]int{nil}
	for i := range c.terms {
		lowest := c.terms[i].lowest
		if lowest == nil {
			lowest = []int{-1}
		}
		var next [][]int
		for _, choice := range choices {
			for _, domain := range lowest {
				next = append(next, append(slices.Clip(choice), domain))
			}
		}
		choices = next
		if len(choices) > mostSets {
			return []func(int) bool{func(int) bool { return false }}
		}
	}
	out := make([]func(int) bool, len(choices))
	for k, choice := range choices {
		out[k] = func(place int) bool { return c.open(c.places[place], choice) }
	}
	return out
}

// open tells whether a node is open to the pod: choice has a domain for each term that is one with the global minimum.
func (c *load) open(node int, choice []int) bool {
	if !c.state.PassesVolumes(c.class, node, c.volumes) {
		return false
	}
	company := true
	for i := range c.terms {
		t := &c.terms[i]
		domain := c.state.DomainOf(t.Term, node)
		switch {
		case t.Kind == fit.Affinity && domain < 0:
			return false
		case t.Kind == fit.Affinity:
			company = company && c.state.Count(t.Term, domain) > 0
		case domain >= 0 && domain == choice[i]:
		case c.spare(t, node) < t.others:
			return false
		}
	}
	return company || c.first
}
