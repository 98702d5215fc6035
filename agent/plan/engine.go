package plan

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// Engine decides round after round and keeps what one round worked out for the next,
// so that a round costs what changed. Its Decide gives exactly what the function
// Decide gives for the same three values; the zero Engine is ready, and knows nothing.
//
// It relies on what a Snapshot promises: what was handed in once is never written to
// again. Not safe for concurrent use.
type Engine struct {
	policy     decision.Policy
	classes    classIndex
	facts      []*nodeFacts // by index of Snapshot.Nodes
	oldFacts   []*nodeFacts
	count      classCounter
	instances  instanceIndex
	filters    filterCache
	nodes      []node // memory of the round
	rooms      []int64
	candidates []candidate
	relocated  []relocated
	undoSteps  []undoStep
	held       int                       // how many reasons the last round had
	busy       map[utilisationKey]string // see busyWords

	cacheValid bool        // key is the input of a decision that may be given again
	key        decisionKey // the last one that was worked out
	plan       decision.Plan
	cached     bool // the last Decide was answered from memory
}

// decisionKey is what a round was asked.
type decisionKey struct {
	s     cluster.Snapshot
	m     decision.Memory
	p     decision.Policy
	until time.Time // the answer may be another one from then on; zero: never
}

// maxCacheAge is how long an answer is believed without being worked out again, whatever it
// says itself.
const maxCacheAge = time.Minute

// Decide is the function Decide with a memory.
func (e *Engine) Decide(s cluster.Snapshot, m decision.Memory, p decision.Policy) (decision.Plan, decision.Memory) {
	if e.cached = e.cacheValid && e.sameInputs(&s, &m, &p); e.cached {
		return e.plan, e.key.m
	}
	if !samePolicy(&e.policy, &p) {
		e.policy, e.facts = p, nil
	}
	w := newRound(e, &s, &m, &p)
	for _, step := range steps {
		step.do(w)
	}
	e.remember(w, m)
	w.scratch.release(len(w.demands))
	return w.plan, w.out
}

// Cached tells that the last Decide gave the Plan and the Memory of the one before it,
// because nothing that they depend on has changed.
func (e *Engine) Cached() bool { return e.cached }

// sameInputs tells that the last decision is the decision for these inputs too.
func (e *Engine) sameInputs(s *cluster.Snapshot, m *decision.Memory, p *decision.Policy) bool {
	l := &e.key
	if s.Now.Before(l.s.Now) || s.Now.Sub(l.s.Now) >= maxCacheAge || !l.until.IsZero() && !s.Now.Before(l.until) || len(s.Outcomes) > 0 {
		return false
	}
	if !same(m, &l.m) || !samePolicy(p, &l.p) || !sameWorld(s, &l.s) {
		return false
	}
	for i := range s.Groups {
		if was, is := &l.s.Groups[i], &s.Groups[i]; fresh(was, l.s.Now, p) != fresh(is, s.Now, p) || !readsAlike(m, was, is) {
			return false
		}
	}
	return true
}

// readsAlike tells that the moment of a group's read plays no part in the answer: it
// does only while a resize is awaited.
func readsAlike(m *decision.Memory, was, is *cluster.NodeGroup) bool {
	_, awaited := m.Resized[is.ID]
	return was.ReadAt.Equal(is.ReadAt) || !awaited
}

// remember remembers a round. Its answer stands for the next ones when it changed nothing:
// no action, no outcome to learn from, and the Memory that it was given.
func (e *Engine) remember(w *roundState, m decision.Memory) {
	e.cacheValid = !w.uncacheable && len(w.plan.Actions) == 0 && len(w.s.Outcomes) == 0 && equalMemory(m, w.out)
	e.plan, e.key = decision.Plan{}, decisionKey{}
	if e.cacheValid {
		w.out = m // the same maps: who hands them in again is known at a glance
		e.plan, e.key = w.plan, decisionKey{s: *w.given, m: m, p: *w.p, until: w.until}
	}
	e.held = len(w.plan.Held)
	clear(e.candidates)
	clear(e.nodes) // no Snapshot is kept alive by memory that is only waiting
}

// equalMemory compares two Memories. The large maps are compared by hand.
func equalMemory(a, b decision.Memory) bool {
	byTime := func(x, y time.Time) bool { return x.Equal(y) }
	equal := equalMaps(a.Unneeded, b.Unneeded, byTime) && equalMaps(a.Unready, b.Unready, byTime) &&
		a.Reservations.Equal(b.Reservations) && maps.Equal(a.ReservedMissing, b.ReservedMissing) &&
		equalMaps(a.Resized, b.Resized, func(x, y decision.Resized) bool { return x.To == y.To && x.At.Equal(y.At) && x.Seen.Equal(y.Seen) }) &&
		slices.EqualFunc(a.Backoff, b.Backoff, func(x, y decision.Backoff) bool {
			return x.Group == y.Group && x.Cause == y.Cause && x.Step == y.Step && x.Text == y.Text && x.Until.Equal(y.Until) && x.Last.Equal(y.Last)
		}) &&
		equalMaps(a.Unregistered, b.Unregistered, byTime) && equalMaps(a.Draining, b.Draining, byTime) &&
		equalMaps(a.Deleted, b.Deleted, byTime) && equalMaps(a.Short, b.Short, byTime) && a.ScaleDownAfter.Equal(b.ScaleDownAfter)
	for _, m := range []*decision.Memory{&a, &b} {
		m.Unneeded, m.Unready, m.Reservations, m.ReservedMissing, m.Resized, m.Backoff = nil, nil, nil, nil, nil, nil
		m.Unregistered, m.Draining, m.Deleted, m.Short, m.ScaleDownAfter = nil, nil, nil, nil, time.Time{}
	}
	return equal && reflect.DeepEqual(a, b) // what is left is what a later version added
}

func equalMaps[K comparable, V any](a, b map[K]V, eq func(V, V) bool) bool {
	return len(a) == len(b) && maps.EqualFunc(a, b, eq)
}

// instanceIndex say which instance backs which Node, as long as neither the Nodes' names and
// addresses nor the groups' lists of instances change.
type instanceIndex struct {
	known  bool
	nodes  []*cluster.Node
	groups []indexedGroup
	id     cluster.Identity
	order  []int32 // of the Nodes by name
	byName map[cluster.NodeName]int
	group  []int32 // by Node, -1: none of ours
	inst   []*cluster.Instance
}

type indexedGroup struct {
	id        cluster.GroupID
	instances []cluster.Instance
}

// stillValid tells whether the constraints still hold, and takes over the Nodes' new values.
func (t *instanceIndex) stillValid(s *cluster.Snapshot) bool {
	if !t.known || len(t.nodes) != len(s.Nodes) || len(t.groups) != len(s.Groups) {
		return false
	}
	for i := range s.Groups {
		if s.Groups[i].ID != t.groups[i].id || !same(&s.Groups[i].Instances, &t.groups[i].instances) {
			return false
		}
	}
	for i, n := range s.Nodes {
		if o := t.nodes[i]; o != n {
			if n.Name != o.Name || n.ProviderID != o.ProviderID || n.SystemUUID != o.SystemUUID || !slices.Equal(n.Addresses, o.Addresses) {
				return false
			}
			t.nodes[i] = n
		}
	}
	return true
}

// rebuild constraints instances to Nodes anew.
func (t *instanceIndex) rebuild(w *roundState) {
	s := w.s
	*t = instanceIndex{known: true, nodes: slices.Clone(s.Nodes), id: cluster.Identify(s.Groups, s.Nodes),
		order: make([]int32, len(s.Nodes)), byName: make(map[cluster.NodeName]int, len(s.Nodes)),
		group: make([]int32, len(s.Nodes)), inst: make([]*cluster.Instance, len(s.Nodes))}
	t.groups = make([]indexedGroup, 0, len(s.Groups))
	for i := range s.Groups {
		t.groups = append(t.groups, indexedGroup{s.Groups[i].ID, s.Groups[i].Instances})
	}
	for i := range t.order {
		t.order[i] = int32(i)
	}
	slices.SortFunc(t.order, func(a, b int32) int { return compareNames(s.Nodes[a], s.Nodes[b]) })
	for k, i := range t.order {
		t.byName[s.Nodes[i].Name] = k
		t.group[k] = -1
	}
	for g := range w.groups {
		for i := range w.groups[g].Instances {
			in := &w.groups[g].Instances[i]
			if name, ok := t.id.Node[in.ID]; ok {
				if k := t.byName[name]; t.inst[k] == nil {
					t.group[k], t.inst[k] = int32(g), in
				}
			}
		}
	}
}

// filterCache are what the shape filters said of demands and nodes.
type filterCache struct {
	gen   int
	rows  [][]int8 // by number of classBook.shape and by node; 0: not asked yet, -1: no
	nodes []filteredNode
}

type filteredNode struct {
	node  *cluster.Node
	state nodeState
}

// refresh forgets the verdicts on nodes that look different now. all: every one.
func (v *filterCache) refresh(w *roundState, all bool) {
	if all || v.gen != w.e.classes.gen || len(v.nodes) != len(w.nodes) {
		*v = filterCache{gen: w.e.classes.gen, nodes: make([]filteredNode, len(w.nodes))}
	}
	for k := range w.nodes {
		n, was := &w.nodes[k], &v.nodes[k]
		alike := was.node == n.Node || was.node != nil && sameShape(was.node, n.Node)
		if !alike || was.state != n.state || n.state == stateUpcoming {
			for _, row := range v.rows {
				if row != nil {
					row[k] = 0
				}
			}
		}
		*was = filteredNode{n.Node, n.state}
	}
}

func sameShape(a, b *cluster.Node) bool {
	return a.Name == b.Name && a.Unschedulable == b.Unschedulable && same(&a.Labels, &b.Labels) && slices.Equal(a.Taints, b.Taints)
}

// passes remembers what the shape filters say of a class and a node.
func (w *roundState) passes(class, n int) bool {
	v := &w.e.filters
	shape := int(w.e.classes.shape[class])
	if shape >= len(v.rows) {
		v.rows = append(v.rows, make([][]int8, shape+1-len(v.rows))...)
	}
	if v.rows[shape] == nil {
		v.rows[shape] = make([]int8, len(w.nodes))
	}
	known := &v.rows[shape][n]
	if *known == 0 {
		*known = -1
		shape := w.nodes[n].shape
		if w.nodes[n].state == stateMarked {
			shape.Taints, shape.Unschedulable = fit.WithoutStartupTaints(shape.Taints), false
		}
		if fit.Passes(&w.s.Classes[class], &shape) {
			*known = 1
		}
	}
	return *known > 0
}
