package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// world is the Snapshot indexed for one round, and what the round has decided so
// far. It points into the Snapshot and never writes to it.
type world struct {
	s      *cluster.Snapshot
	p      *Policy
	in     *Memory
	out    Memory
	plan   Plan
	now    time.Time
	e      *Engine
	given  *cluster.Snapshot // the Snapshot as it was handed in
	until  time.Time         // when the answer may be another one, all else equal; zero: never
	id     cluster.Identity
	space  *fit.Space
	groups []group // sorted by ID
	nodes  []node  // sorted by name
	byName map[cluster.NodeName]int
	byID   map[cluster.GroupID]int
	budget map[string]int // evictions that are still allowed, by budget

	ties        *moveTies
	promises    map[cluster.PodKey]cluster.GroupID // see promisedTo
	counted     *bool                              // see promised
	asksNothing bool                               // no class asks for anything of other pods
	paths       *paths                             // where pods that are moved find room
	open        []int                              // what roomy found; nil: not asked yet
	memos       []memo                             // what the packer was asked
	empties     []int64                            // room for what template says
	pledged     [][]cluster.PodKey                 // room for named and merge
	line        line                               // the pods that want room
	want        []want                             // pending pods by class, those that trigger
	pool        int                                // steps that packing may still spend on columns
	desk        *desk                              // what all of this is written on
	bonds       *bonds                             // what ties them to others; nil: nothing does
	unjudged    bool                               // a pod that fit cannot judge waits for its first verdict
	unsteady    bool                               // the answer depends on every moment
	grew        bool
	emptying    int    // marked nodes without pods
	draining    int    // nodes that are being emptied
	unhealthy   string // why deletions are frozen; empty: they are not
	sums        sums
	market      market
	sets        [][]int               // by group: those that are balanced with it; nil: not asked yet
	spares      []spare               // headroom that is open now
	vacated     map[int]*cluster.Node // by node: see vacate
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
	coming   int    // machines that will come and are not Nodes yet
	replaced int    // interrupted machines: as many are coming in their place, and nobody asked for these
	rule     string // why the group cannot be grown; empty: it can
	why      string
	empty    []int64
	shape    fit.Shape
	anyone   int8 // whether its machines let a pod on that asks nothing of them; 0: not asked yet
	grow     int  // machines added in this round
	leaving  int  // machines whose deletion is under way or decided
	shrinks  bool
	bought   bool // this round raises the target
	doomed   []doomed
	failed   []cluster.Failure // all failures to start or to join that are known

	pods     []cluster.PodKey // those that new machines are for, sorted
	runs     []run            // the same by class
	expected int
	classes  int
	last     int // the class that was counted last
	spare    int // pieces of headroom that new machines are for
}

// run are pods of one class in the order of their names.
type run struct {
	class int
	keys  []cluster.PodKey
}

// node is a Node and what the round knows about it.
type node struct {
	*cluster.Node
	f      *facts
	group  int // index into world.groups, -1: none of ours
	inst   *cluster.Instance
	room   []int64 // what is left, of the axes of world.space
	state  nodeState
	shape  fit.Shape
	counts bool          // a pending pod or a moved pod counts on it
	hosts  bool          // only moved pods do
	spare  []spare       // headroom that is kept free on it
	goes   bool          // it is on its way out, or would be: no destination
	whole  *cluster.Node // with the pods that vacate took off it; nil: it is not interrupted
}

// nodeState says what a node is good for.
type nodeState int

const (
	stateOut    nodeState = iota // not Ready, or on its way out: no room for anybody
	stateReady                   // the scheduler may place pods now
	stateComing                  // registered, and will be Ready soon
	stateMarked                  // carries our mark
)

func open(e *Engine, asked *cluster.Snapshot, m *Memory, p *Policy) *world {
	seated := asked.Seated()
	s := &seated
	w := &world{e: e, given: asked, s: s, p: p, in: m, now: s.Now, pool: columnPool, desk: desks.Get().(*desk)}
	if len(s.Groups) > 4*manyGroups { // which groups then matters more than the last machine of one
		w.pool = roughPool
	}
	most := e.held
	if most == 0 { // nearly every node has a reason to stay
		most = len(s.Nodes)
	}
	w.plan.Held = make([]Held, 0, most+8)
	w.desk.groups = slices.Grow(w.desk.groups[:0], len(s.Groups))[:len(s.Groups)]
	w.groups = w.desk.groups
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

// index ties instances to nodes and pods to nodes, and measures the room.
func (w *world) index() {
	changed := w.e.classes.learn(w.s.Classes)
	w.space = w.e.classes.space
	again := w.e.ties.hold(w.s)
	if !again {
		w.e.ties.tie(w)
	}
	w.vacate()
	w.learnNodes(changed)
	w.indexNodes()
	w.e.verdicts.learnShapes(w, !again)
	w.indexPods()
	w.budget = make(map[string]int, len(w.s.Budgets))
	for _, b := range w.s.Budgets {
		w.budget[b.Key] = b.Allowed
	}
}

func (w *world) indexNodes() {
	t := &w.e.ties
	w.id, w.byName = t.id, t.byName
	w.e.nodes = slices.Grow(w.e.nodes[:0], len(t.order))[:len(t.order)]
	w.nodes = w.e.nodes
	axes := w.space.Axes()
	w.e.rooms = slices.Grow(w.e.rooms[:0], len(w.nodes)*axes)[:len(w.nodes)*axes]
	for k, i := range t.order {
		n := &w.nodes[k]
		*n = node{Node: w.s.Nodes[i], f: w.e.facts[i], group: int(t.group[k]), inst: t.inst[k], whole: w.vacated[k], room: w.e.rooms[k*axes : (k+1)*axes : (k+1)*axes]}
		n.state = w.stateOf(n)
		n.shape = fit.Shape{Name: n.Name, Labels: n.Labels, Taints: n.Taints, Unschedulable: n.Unschedulable}
		if n.state == stateComing {
			w.space.Room(n.room, w.become(n))
			w.takeHeld(n.f, n.room)
		} else {
			copy(n.room, n.f.room)
		}
	}
}

// become makes a registered node that is not Ready yet look as it soon will: without
// the taints of its start and those that its template does not promise (a controller
// may take them off; when they are still there at Ready, the template learns them, and
// a machine that is bought in between would carry them too), with what the template promises where the kubelet has not
// reported it yet (a device plugin's resource comes last).
func (w *world) become(n *node) cluster.Resources {
	n.shape.Taints, n.shape.Unschedulable = fit.Lasting(n.Taints), false
	alloc := n.Allocatable
	if n.group < 0 || w.groups[n.group].Template.Unknown != "" {
		return alloc
	}
	t := &w.groups[n.group].Template
	n.shape.Taints = slices.DeleteFunc(slices.Clone(n.shape.Taints), func(x cluster.Taint) bool { return !slices.Contains(t.Taints, x) })
	labels := make(map[string]string, len(t.Labels)+len(n.Labels))
	for _, from := range []map[string]string{t.Labels, n.Labels} {
		for k, v := range from {
			labels[k] = v
		}
	}
	n.shape.Labels = labels
	if alloc.MilliCPU == 0 || alloc.Memory == 0 || alloc.Pods == 0 {
		return t.Allocatable
	}
	alloc.Extended = make(map[string]int64, len(t.Allocatable.Extended))
	for _, from := range []map[string]int64{t.Allocatable.Extended, n.Allocatable.Extended} {
		for k, v := range from {
			alloc.Extended[k] = max(alloc.Extended[k], v)
		}
	}
	return alloc
}

func (w *world) stateOf(n *node) nodeState {
	if n.inst != nil {
		switch n.inst.Phase {
		case cluster.PhaseStopped, cluster.PhaseDeleting, cluster.PhaseGone, cluster.PhaseFailed:
			return stateOut
		}
		if _, told := w.out.Deleted[n.inst.ID]; told {
			return stateOut
		}
	}
	if n.Deleting {
		return stateOut
	}
	if n.f.mark {
		if n.f.ours && n.group >= 0 { // without an instance there is nothing to take back
			return stateMarked
		}
		return stateOut
	}
	starting := n.Ready != cluster.StatusTrue || n.f.starts || w.lacks(n)
	if !starting {
		return stateReady
	}
	if n.group >= 0 && !w.passed(n.Created.Add(w.startup(n))) && !n.Unschedulable && !w.silent(n) {
		return stateComing
	}
	if n.Ready != cluster.StatusTrue {
		return stateOut
	}
	return stateReady
}

// silentFor is how long a kubelet may be silent, from when the node controller noticed,
// until its young node no longer counts as starting: a reboot takes less.
const silentFor = time.Minute

// silent tells a node whose kubelet is not heard any more from one that is starting:
// a kubelet that starts says "not Ready" itself, Unknown is said for it.
func (w *world) silent(n *node) bool {
	if n.Ready != cluster.StatusUnknown || n.ReadySince.IsZero() {
		return false
	}
	until := n.ReadySince.Add(silentFor)
	w.wake(until)
	return w.passed(until)
}

// startingTaint tells a taint that a young node loses by itself. Pressure and
// deletion taints are not of that kind.
func startingTaint(t cluster.Taint) bool {
	return fit.Startup(t) && t.Effect != "PreferNoSchedule" &&
		t.Key != cluster.TaintToBeDeleted && !strings.HasSuffix(t.Key, "-pressure") && t.Key != "node.cloudprovider.kubernetes.io/shutdown"
}

// lacks tells that the template promises a resource that the node does not report
// yet, as a GPU's device plugin does late (kubernetes/autoscaler#3164).
func (w *world) lacks(n *node) bool {
	if n.group < 0 || w.groups[n.group].Template.Unknown != "" {
		return false
	}
	for name, v := range w.groups[n.group].Template.Allocatable.Extended {
		if v > 0 && n.Allocatable.Extended[name] == 0 {
			return true
		}
	}
	return false
}

func taint(n *cluster.Node, key string) (cluster.Taint, bool) {
	for _, t := range n.Taints {
		if t.Key == key {
			return t, true
		}
	}
	return cluster.Taint{}, false
}

func marked(n *cluster.Node) bool { _, ok := taint(n, cluster.TaintToBeDeleted); return ok }

func ours(n *cluster.Node) bool { _, ok := n.Annotations[cluster.AnnotationCordoned]; return ok }

// expendable tells a pod that neither triggers scale-up nor stands in the way.
func (w *world) expendable(pod *cluster.Pod) bool {
	return w.s.Classes[pod.Class].Priority < w.p.ExpendablePodsCutoff
}

// indexPods takes the room of nominated pods and of DaemonSet pods which are still to
// come. That of the pods which are bound is taken already.
func (w *world) indexPods() {
	w.lineUp()
	for _, i := range w.line.nominated {
		pod := &w.s.Pods[i]
		if n, ok := w.byName[pod.Nominated]; ok && !w.expendable(pod) {
			fit.Take(w.nodes[n].room, w.space.Class(pod.Class), 1)
			w.nodes[n].counts = true
		}
	}
	w.reserveDaemons()
}

func daemon(pod *cluster.Pod) bool { return pod.Owner != nil && pod.Owner.Kind == "DaemonSet" }

func (w *world) reserveDaemons() {
	if len(w.s.DaemonSets) == 0 {
		return
	}
	for i := range w.nodes {
		n := &w.nodes[i]
		for d := range w.s.DaemonSets {
			ds := &w.s.DaemonSets[d]
			if !slices.Contains(n.f.daemons, ds.UID) && fit.DaemonRunsOn(&w.s.Classes[ds.Class], &n.shape) {
				fit.Take(n.room, w.space.Class(ds.Class), 1)
			}
		}
	}
}

// template returns the room and the shape of the group's next machine, DaemonSets
// taken off.
func (w *world) template(g *group) ([]int64, *fit.Shape) {
	if g.empty == nil {
		g.shape = fit.Shape{Labels: g.Template.Labels, Taints: fit.Lasting(g.Template.Taints)}
		if axes := w.space.Axes(); len(w.empties) < axes {
			w.empties = make([]int64, axes*len(w.groups))
		}
		g.empty, w.empties = w.empties[:w.space.Axes():w.space.Axes()], w.empties[w.space.Axes():]
		w.space.Room(g.empty, g.Template.Allocatable)
		for d := range w.s.DaemonSets {
			if c := w.s.DaemonSets[d].Class; fit.DaemonRunsOn(&w.s.Classes[c], &g.shape) {
				fit.Take(g.empty, w.space.Class(c), 1)
			}
		}
	}
	return g.empty, &g.shape
}

func (w *world) hold(kind, name, rule, format string, args ...any) {
	why := format
	if len(args) > 0 {
		why = fmt.Sprintf(format, args...)
	}
	w.keep(kind, name, rule, why)
}

// keep is hold for words that are ready.
func (w *world) keep(kind, name, rule, why string) {
	w.plan.Held = append(w.plan.Held, Held{Kind: kind, Name: name, Count: 1, Rule: rule, Why: why})
}

func (w *world) do(a Action) { w.plan.Actions = append(w.plan.Actions, a) }

// wake remembers a timer; those that are over do not count.
func (w *world) wake(t time.Time) {
	w.passed(t)
	if t.After(w.now) && (w.plan.Wake.IsZero() || t.Before(w.plan.Wake)) {
		w.plan.Wake = t
	}
}

// fresh tells that a group's facts are good enough to delete by.
func (w *world) fresh(g *group) bool {
	w.passed(g.ReadAt.Add(w.p.FreshFor + 1))
	return fresh(g.NodeGroup, w.now, w.p)
}

func fresh(g *cluster.NodeGroup, now time.Time, p *Policy) bool {
	return g.Stale == "" && now.Sub(g.ReadAt) <= p.FreshFor
}

// passed tells that a moment has come, and notes that the answer may be another one
// when it has. Whatever compares with now asks here.
func (w *world) passed(t time.Time) bool {
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

// compareHeld orders reasons.
func compareHeld(a, b Held) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name), strings.Compare(a.Rule, b.Rule), strings.Compare(a.Why, b.Why), cmp.Compare(a.Count, b.Count))
}

func count(n, of int) string { return fmt.Sprintf("%d of %d", n, of) }

func compareNames(a, b *cluster.Node) int { return strings.Compare(string(a.Name), string(b.Name)) }

// sortHeld orders reasons. What is of one kind follows each other already, mostly, and
// in its order.
func sortHeld(held []Held) []Held {
	slices.SortFunc(held, compareHeld)
	return held
}
