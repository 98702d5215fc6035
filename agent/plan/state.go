package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// roundState is the Snapshot indexed for one round, and what the round has decided so
// far. It points into the Snapshot and never writes to it.
type roundState struct {
	s      *cluster.Snapshot
	p      *decision.Policy
	in     *decision.Memory
	out    decision.Memory
	plan   decision.Plan
	now    time.Time
	e      *roundCache
	given  *cluster.Snapshot // the Snapshot as it was handed in
	until  time.Time         // when the answer may be another one, all else equal; zero: never
	id     cluster.Identity
	space  *fit.Dimensions
	groups []group // sorted by ID
	nodes  []node  // sorted by name
	byName map[cluster.NodeName]int
	byID   map[cluster.GroupID]int
	budget map[string]int // evictions that are still allowed, by budget

	reservedGroup     map[cluster.PodKey]cluster.GroupID // see reservedTo
	reservationsStand *bool                              // see reserved
	roomyNodes        []int                              // what nodesWithRoom found; nil: not asked yet
	empties           []int64                            // room for what template says
	unbound           unboundPods                        // the pods that want room
	demands           []demand                           // pending pods by class, those that trigger
	unjudged          bool                               // a pod that fit cannot judge waits for its first verdict
	uncacheable       bool                               // the answer depends on every moment
	grew              bool
	emptying          int    // marked nodes without pods
	draining          int    // nodes that are being emptied
	unhealthy         string // why deletions are frozen; empty: they are not
	sums              sums
	sets              [][]int               // by group: those that are balanced with it; nil: not asked yet
	headrooms         []headroomPieces      // headroom that is open now
	interruptedNodes  map[int]*cluster.Node // by node: see releaseInterrupted
}

// group is a node group and what the round knows about it.
type group struct {
	*cluster.NodeGroup
	target   int    // the target after lagging reads are corrected
	members  int    // live instances that the target counts
	size     int    // the larger of the two: what growth is added to
	raise    bool   // the target is below the minimum
	nodes    int    // of them, those that are Nodes
	unready  int    // of these, those that are neither Ready nor starting
	upcoming int    // machines that will come and are not Nodes yet
	replaced int    // interrupted machines: as many are upcoming in their place, and nobody asked for these
	rule     string // why the group cannot be grown; empty: it can
	why      string
	empty    []int64
	shape    fit.NodeInfo
	anyone   int8 // whether its machines let a pod on that asks nothing of them; 0: not asked yet
	grow     int  // machines added in this round
	removing int  // machines whose deletion is under way or decided
	shrinks  bool
	bought   bool // this round raises the target
	reapable []reapable
	failed   []cluster.Failure // all failures to start or to join that are known

	pods     []cluster.PodKey // those that new machines are for, sorted
	runs     []podRun         // the same by class
	expected int
	classes  int
	last     int // the class that was counted last
	headroom int // pieces of headroom that new machines are for
}

// podRun are pods of one class in the order of their names.
type podRun struct {
	class int
	keys  []cluster.PodKey
}

func newRound(e *roundCache, asked *cluster.Snapshot, m *decision.Memory, p *decision.Policy) *roundState {
	seated := asked.Seated()
	s := &seated
	w := &roundState{e: e, given: asked, s: s, p: p, in: m, now: s.Now}
	most := e.held
	if most == 0 { // nearly every node has a reason to stay
		most = len(s.Nodes)
	}
	w.plan.Held = make([]decision.Held, 0, most+8)
	w.groups = make([]group, len(s.Groups))
	w.byID = make(map[cluster.GroupID]int, len(s.Groups))
	for i := range s.Groups {
		w.groups[i].NodeGroup = &s.Groups[i]
	}
	slices.SortFunc(w.groups, func(a, b group) int { return strings.Compare(string(a.ID), string(b.ID)) })
	for i := range w.groups {
		w.byID[w.groups[i].ID] = i
	}
	return w
}

// index constraints instances to nodes and pods to nodes, and measures the room.
func (w *roundState) index() {
	changed := w.e.classes.update(w.s.Classes)
	w.space = w.e.classes.space
	again := w.e.instances.stillValid(w.s)
	if !again {
		w.e.instances.rebuild(w)
	}
	w.releaseInterrupted()
	w.refreshFacts(changed)
	w.indexNodes()
	w.e.filters.refresh(w, !again)
	w.indexPods()
	w.budget = make(map[string]int, len(w.s.Budgets))
	for _, b := range w.s.Budgets {
		w.budget[b.Key] = b.Allowed
	}
}

// expendable tells a pod that neither triggers scale-up nor stands in the way.
func (w *roundState) expendable(pod *cluster.Pod) bool {
	return w.s.Classes[pod.Class].Priority < w.p.ExpendablePodsCutoff
}

// indexPods takes the room of nominated pods and of DaemonSet pods which are still to
// come. That of the pods which are bound is taken already.
func (w *roundState) indexPods() {
	w.indexUnbound()
	for _, i := range w.unbound.nominated {
		pod := &w.s.Pods[i]
		if n, ok := w.byName[pod.Nominated]; ok && !w.expendable(pod) {
			fit.Sub(w.nodes[n].room, w.space.Class(pod.Class), 1)
			w.nodes[n].inUse = true
		}
	}
	w.reserveDaemons()
}

func daemon(pod *cluster.Pod) bool { return pod.Owner != nil && pod.Owner.Kind == "DaemonSet" }

func (w *roundState) reserveDaemons() {
	if len(w.s.DaemonSets) == 0 {
		return
	}
	for i := range w.nodes {
		n := &w.nodes[i]
		for d := range w.s.DaemonSets {
			ds := &w.s.DaemonSets[d]
			if !slices.Contains(n.f.daemons, ds.UID) && fit.DaemonRunsOn(&w.s.Classes[ds.Class], &n.shape) {
				fit.Sub(n.room, w.space.Class(ds.Class), 1)
			}
		}
	}
}

// template returns the room and the shape of the group's next machine, DaemonSets
// taken off.
func (w *roundState) template(g *group) ([]int64, *fit.NodeInfo) {
	if g.empty == nil {
		g.shape = fit.NodeInfo{Labels: g.Template.Labels, Taints: fit.WithoutStartupTaints(g.Template.Taints)}
		if axes := w.space.Len(); len(w.empties) < axes {
			w.empties = make([]int64, axes*len(w.groups))
		}
		g.empty, w.empties = w.empties[:w.space.Len():w.space.Len()], w.empties[w.space.Len():]
		w.space.Capacity(g.empty, g.Template.Allocatable)
		for d := range w.s.DaemonSets {
			if c := w.s.DaemonSets[d].Class; fit.DaemonRunsOn(&w.s.Classes[c], &g.shape) {
				fit.Sub(g.empty, w.space.Class(c), 1)
			}
		}
	}
	return g.empty, &g.shape
}

func (w *roundState) held(kind, name, rule, format string, args ...any) {
	why := format
	if len(args) > 0 {
		why = fmt.Sprintf(format, args...)
	}
	w.heldWhy(kind, name, rule, why)
}

// heldWhy is hold for words that are ready.
func (w *roundState) heldWhy(kind, name, rule, why string) {
	w.plan.Held = append(w.plan.Held, decision.Held{Kind: kind, Name: name, Count: 1, Rule: rule, Why: why})
}

func (w *roundState) act(a decision.Action) { w.plan.Actions = append(w.plan.Actions, a) }

// wakeAt remembers a timer; those that are over do not count.
func (w *roundState) wakeAt(t time.Time) {
	w.reached(t)
	if t.After(w.now) && (w.plan.Wake.IsZero() || t.Before(w.plan.Wake)) {
		w.plan.Wake = t
	}
}

// fresh tells that a group's facts are good enough to delete by.
func (w *roundState) fresh(g *group) bool {
	w.reached(g.ReadAt.Add(w.p.FreshFor + 1))
	return fresh(g.NodeGroup, w.now, w.p)
}

func fresh(g *cluster.NodeGroup, now time.Time, p *decision.Policy) bool {
	return g.Stale == "" && now.Sub(g.ReadAt) <= p.FreshFor
}

// reached tells that a moment has come, and notes that the answer may be another one
// when it has. Whatever compares with now asks here.
func (w *roundState) reached(t time.Time) bool {
	if !t.After(w.now) {
		return true
	}
	if w.until.IsZero() || t.Before(w.until) {
		w.until = t
	}
	return false
}

func orElse(d *time.Duration, otherwise time.Duration) time.Duration {
	if d != nil {
		return *d
	}
	return otherwise
}

func set[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[k] = v
}

// compareHeld orders reasons. Nearly all are told apart by their names.
func compareHeld(a, b decision.Held) int {
	if a.Kind != b.Kind {
		return strings.Compare(a.Kind, b.Kind)
	}
	if c := strings.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Why, b.Why), cmp.Compare(a.Count, b.Count))
}

func count(n, of int) string { return fmt.Sprintf("%d of %d", n, of) }

func compareNames(a, b *cluster.Node) int { return strings.Compare(string(a.Name), string(b.Name)) }

// sortHeld orders reasons. What is of one kind follows each other already, mostly, and
// in its order.
func sortHeld(held []decision.Held) []decision.Held {
	slices.SortFunc(held, compareHeld)
	return held
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sizeCost is what a group's machine costs, in cores.
func (g *group) sizeCost() float64 {
	c := &g.Template.Capacity
	return coreEquivalents(float64(c.MilliCPU), float64(c.Memory))
}

// roundCache is what one round worked out for the next.
type roundCache struct {
	classes   classIndex
	facts     []*nodeFacts // by index of Snapshot.Nodes
	oldFacts  []*nodeFacts
	count     classCounter
	instances instanceIndex
	filters   filterCache
	nodes     []node // memory of the round
	rooms     []int64
	held      int // how many reasons the last round had
}

// daemonSetsOf are the DaemonSets that take room on the group's next machine.
func (w *roundState) daemonSetsOf(g *group) []cluster.PodKey {
	_, shape := w.template(g)
	var out []cluster.PodKey
	for i := range w.s.DaemonSets {
		if d := &w.s.DaemonSets[i]; fit.DaemonRunsOn(&w.s.Classes[d.Class], shape) {
			out = append(out, d.Key)
		}
	}
	slices.Sort(out)
	return out
}
