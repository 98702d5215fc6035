package round

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// State is the Snapshot indexed for one round, and what the round has decided so
// far. It points into the Snapshot and never writes to it.
type State struct {
	Snapshot   *cluster.Snapshot
	Policy     *decision.Policy
	Memory     *decision.Memory
	Next       decision.Memory
	Plan       decision.Plan
	Now        time.Time
	Cache      *Cache
	Given      *cluster.Snapshot // the Snapshot as it was handed in
	Until      time.Time         // when the answer may be another one, all else equal; zero: never
	Identity   cluster.Identity  // which instance backs which Node
	Dimensions *fit.Dimensions
	Groups     []Group // sorted by ID
	Nodes      []Node  // sorted by name
	ByName     map[cluster.NodeName]int
	ByID       map[cluster.GroupID]int
	Budget     map[string]int // evictions that are still allowed, by budget

	reservedGroup    map[cluster.PodKey]cluster.GroupID // see ReservedTo
	empties          []int64                            // room for what template says
	takes            [][]int8                           // by number of classIndex.shape and by group; 0: not asked yet, -1: no (see Takes)
	Unbound          unboundPods                        // the pods that want room
	Demands          []Demand                           // pending pods by class, those that trigger
	Unjudged         bool                               // a pod that fit cannot judge waits for its first verdict
	Uncacheable      bool                               // the answer depends on every moment
	Grew             bool
	Unhealthy        string // why deletions are frozen; empty: they are not
	totals           totals
	Spent            StepsSpent            // steps of the parts of this round
	sets             [][]int               // by group: those that are balanced with it; nil: not asked yet
	headrooms        []HeadroomPieces      // headroom that is open now
	interruptedNodes map[int]*cluster.Node // by node: see releaseInterrupted
	rebuilt          bool                  // see matchInstances
	shares           *DaemonShares         // see Shares
}

// Group is a node group and what the round knows about it.
type Group struct {
	*cluster.NodeGroup
	CorrectedTarget int                  // the target after lagging reads are corrected
	Members         int                  // live instances that the target counts
	Size            int                  // the larger of the two: what growth is added to
	Raise           bool                 // the target is below the minimum
	Nodes           int                  // of them, those that are Nodes
	Unready         int                  // of these, those that are neither Ready nor starting
	Upcoming        int                  // machines that will come and are not Nodes yet
	Lost            int                  // machines whose Node was deleted, for which no pod waits
	replaced        int                  // interrupted machines: as many are upcoming in their place, and nobody asked for these
	Growth          decision.GrowthLimit // the verdict of growth.Judge; see CanGrow
	Empty           []int64
	shape           fit.NodeInfo
	Grow            int // machines added in this round
	Removing        int // machines whose deletion is under way or decided
	Shrinks         bool
	Bought          bool // this round raises the target
	Reapable        []Reapable
	failed          []cluster.Failure // all failures to start or to join that are known

	Pods     []cluster.PodKey // those that new machines are for, sorted
	Runs     []PodRun         // the same by class
	Expected int
	Classes  int
	Headroom int // pieces of headroom that new machines are for
}

// CanGrow tells whether the group can be grown at all in this round. How many machines it may
// add is for package growth to say.
func (g *Group) CanGrow() bool { return g.Growth.Rule == "" }

// PodRun are pods of one class in the order of their names.
type PodRun struct {
	Class int
	Keys  []cluster.PodKey
}

func New(e *Cache, asked *cluster.Snapshot, m *decision.Memory, p *decision.Policy) *State {
	seated := asked.Seated()
	s := &seated
	w := &State{Cache: e, Given: asked, Snapshot: s, Policy: p, Memory: m, Now: s.Now}
	most := e.Held
	if most == 0 { // nearly every node has a reason to stay
		most = len(s.Nodes)
	}
	w.Plan.Held = make([]decision.Held, 0, most+8)
	w.Groups = make([]Group, len(s.Groups))
	w.ByID = make(map[cluster.GroupID]int, len(s.Groups))
	for i := range s.Groups {
		w.Groups[i].NodeGroup = &s.Groups[i]
	}
	slices.SortFunc(w.Groups, func(a, b Group) int { return strings.Compare(string(a.ID), string(b.ID)) })
	for i := range w.Groups {
		w.ByID[w.Groups[i].ID] = i
	}
	return w
}

// Index finds the instances and the pods of the nodes, and measures the room.
func (w *State) Index() {
	changed := w.Cache.Classes.update(w.Snapshot.Classes)
	w.Dimensions = w.Cache.Classes.space
	w.matchInstances()
	w.releaseInterrupted()
	w.refreshFacts(changed)
	w.indexNodes()
	w.Cache.filters.refresh(w, w.rebuilt)
	w.indexPods()
	w.Budget = make(map[string]int, len(w.Snapshot.Budgets))
	for _, b := range w.Snapshot.Budgets {
		w.Budget[b.Key] = b.Allowed
	}
}

// Expendable tells a pod that neither triggers scale-up nor stands in the way.
func (w *State) Expendable(pod *cluster.Pod) bool {
	return w.Snapshot.Classes[pod.Class].Priority < w.Policy.ExpendablePodsCutoff
}

// indexPods takes the room of nominated pods and of DaemonSet pods which are still to
// come. That of the pods which are bound is taken already.
func (w *State) indexPods() {
	w.dropNominations()
	w.indexUnbound()
	for _, i := range w.Unbound.nominated {
		pod := &w.Snapshot.Pods[i]
		if n, ok := w.ByName[pod.Nominated]; ok && !w.Expendable(pod) {
			binpack.Sub(w.Nodes[n].Room, w.Dimensions.Class(pod.Class), 1)
			w.Nodes[n].InUse = true
		}
	}
	w.reserveDaemons()
}

// Template returns the room and the shape of the group's next machine, DaemonSets
// taken off.
func (w *State) Template(g *Group) ([]int64, *fit.NodeInfo) {
	if g.Empty == nil {
		g.shape = nextMachine(&g.Template, w.Policy)
		if dimensions := w.Dimensions.Len(); len(w.empties) < dimensions {
			w.empties = make([]int64, dimensions*len(w.Groups))
		}
		g.Empty, w.empties = w.empties[:w.Dimensions.Len():w.Dimensions.Len()], w.empties[w.Dimensions.Len():]
		w.Dimensions.Capacity(g.Empty, g.Template.Allocatable)
		for d := range w.daemonsOn(&g.shape) {
			binpack.Sub(g.Empty, w.Shares().Vector(w.ByID[g.ID], d, w.Dimensions), 1)
			g.shape.Daemons = append(g.shape.Daemons, w.Snapshot.DaemonSets[d].Class)
		}
	}
	return g.Empty, &g.shape
}

func (w *State) Held(kind, name, rule, format string, args ...any) {
	w.HeldWhy(kind, name, rule, fmt.Sprintf(format, args...))
}

// HeldWhy is hold for words that are ready.
func (w *State) HeldWhy(kind, name, rule, why string) {
	w.Plan.Held = append(w.Plan.Held, decision.Held{Kind: kind, Name: name, Count: 1, Rule: rule, Why: why})
}

func (w *State) Act(a decision.Action) { w.Plan.Actions = append(w.Plan.Actions, a) }

// WakeAt remembers a timer; those that are over do not count.
func (w *State) WakeAt(t time.Time) {
	w.Reached(t)
	if t.After(w.Now) && (w.Plan.Wake.IsZero() || t.Before(w.Plan.Wake)) {
		w.Plan.Wake = t
	}
}

// Fresh tells that a group's facts are good enough to delete by.
func (w *State) Fresh(g *Group) bool {
	w.Reached(g.ReadAt.Add(w.Policy.FreshFor + 1))
	return Fresh(g.NodeGroup, w.Now, w.Policy)
}

func Fresh(g *cluster.NodeGroup, now time.Time, p *decision.Policy) bool {
	return g.Stale == "" && now.Sub(g.ReadAt) <= p.FreshFor
}

// Reached tells that a moment has come, and notes that the answer may be another one
// when it has. Whatever compares with now asks here.
func (w *State) Reached(t time.Time) bool {
	if !t.After(w.Now) {
		return true
	}
	if w.Until.IsZero() || t.Before(w.Until) {
		w.Until = t
	}
	return false
}

func OrElse[T any](d *T, otherwise T) T {
	if d != nil {
		return *d
	}
	return otherwise
}

func Set[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[k] = v
}

// CompareHeld orders reasons. Nearly all are told apart by their names.
func CompareHeld(a, b decision.Held) int {
	if a.Kind != b.Kind {
		return strings.Compare(a.Kind, b.Kind)
	}
	if c := strings.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Why, b.Why), cmp.Compare(a.Count, b.Count))
}

func count(n, of int) string { return fmt.Sprintf("%d of %d", n, of) }

func CompareNames(a, b *cluster.Node) int { return strings.Compare(string(a.Name), string(b.Name)) }

// sortHeld orders reasons. What is of one kind follows each other already, mostly, and
// in its order.
func sortHeld(held []decision.Held) []decision.Held {
	slices.SortFunc(held, CompareHeld)
	return held
}

func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// SizeCost is the cost of a group's machine by its size, in cores.
func (g *Group) SizeCost() float64 {
	c := &g.Template.Capacity
	return binpack.CoreEquivalents(float64(c.MilliCPU), float64(c.Memory))
}

// Cache keeps the results of one round that the next one can use.
type Cache struct {
	Classes   classIndex
	Facts     []*nodeFacts // by index of Snapshot.Nodes
	oldFacts  []*nodeFacts
	Count     classCounter
	instances instanceIndex
	filters   filterCache
	Nodes     []Node // memory of the round
	rooms     []int64
	Held      int // how many reasons the last round had
}

// BudgetSpent tells in the Plan that a part has no steps left and decides the rest coarsely,
// once a part.
func (w *State) BudgetSpent(p Part, format string, args ...any) {
	if w.Spent.TellOnce(p) {
		w.HeldWhy("cluster", "cluster", decision.RuleBudget, "the budget of "+p.String()+" is spent: "+fmt.Sprintf(format, args...))
	}
}
