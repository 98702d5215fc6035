package observe

import (
	"reflect"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Urgency is how soon a change of the world deserves a round.
type Urgency int

// The urgencies.
const (
	Never Urgency = iota // changes nothing that a decision reads
	Later                // may start or stop a timer: within seconds
	Soon                 // a pod waits, or a node came, went or changed: now
)

// world is the Kubernetes half of a Snapshot, kept up to date by watch events.
type world struct {
	mu          sync.Mutex
	schedulers  []string
	classes     classes
	nodes       cells                              // with the pods that are bound
	pods        table[cluster.PodKey, cluster.Pod] // those that are not bound
	daemonSets  table[cluster.PodKey, cluster.DaemonSet]
	budgets     table[string, cluster.Budget]
	namespaces  table[string, cluster.Namespace]
	storage     storage
	limits      map[cluster.NodeName]map[string]int64 // of CSINodes
	attachments attachments
	// undiminished are the limits of nodes whose rows show less (limitsOf).
	undiminished map[cluster.NodeName]map[string]int64
	makers       map[cluster.UID]maker
	broods       map[cluster.UID]*brood
	short        map[cluster.UID]maker      // those with pods still to be made, desired less what is there
	lacking      []cluster.Controller       // the last slice of them handed out; nil when they changed since
	births       map[cluster.NodeName]birth // of nodes that were seen soon after they registered
	selectors    map[string]budgetSelector
	classBudget  map[int][]string
	// waitingSince is when the first pod that no round has seen yet was seen to be
	// Unschedulable, by this machine's clock (the API's stamps have whole seconds).
	waitingSince time.Time
}

// brood are the pods of one controller.
type brood struct {
	owner *cluster.Owner // shared by all of them
	pods  int
	live  int
}

type budgetSelector struct {
	namespace string
	selector  labels.Selector
}

// birthFor is how young a node must be for its first sight to count as its birth.
const birthFor = 30 * time.Second

func newWorld(schedulers []string) *world {
	return &world{
		schedulers:   schedulers,
		makers:       map[cluster.UID]maker{},
		broods:       map[cluster.UID]*brood{},
		short:        map[cluster.UID]maker{},
		births:       map[cluster.NodeName]birth{},
		selectors:    map[string]budgetSelector{},
		classBudget:  map[int][]string{},
		storage:      newStorage(),
		limits:       map[cluster.NodeName]map[string]int64{},
		attachments:  newAttachments(),
		undiminished: map[cluster.NodeName]map[string]int64{},
	}
}

// snapshot returns what the world knows now. The caller holds mu.
func (w *world) snapshot() cluster.Snapshot {
	nodes, pods := w.bound()
	return cluster.Snapshot{
		Nodes:       nodes,
		Classes:     w.classes.snapshot(),
		Pods:        pods,
		DaemonSets:  w.daemonSets.snapshot(),
		Budgets:     w.budgets.snapshot(),
		Controllers: w.missing(),
		Namespaces:  w.askedNamespaces(),
	}
}

func (w *world) putNode(n *corev1.Node) Urgency {
	row := convertNode(n)
	w.mu.Lock()
	defer w.mu.Unlock()
	old, had := w.nodes.get(row.Name)
	if (!had || old.UID != row.UID) && time.Since(row.Created) < birthFor {
		w.births[row.Name] = birth{uid: row.UID, labels: row.Labels, taints: row.Taints}
	}
	var pods []cluster.Pod
	if k := w.nodes.at[row.Name]; k != nil {
		pods = k.node.Pods // they may have been seen before their Node
	}
	row.VolumeLimits = w.limitsOf(row.Name, pods)
	if had {
		row.Pods = old.Pods
		if reflect.DeepEqual(*old, row) {
			return Never
		}
	}
	w.nodes.put(row)
	return Soon
}

func (w *world) dropNode(name cluster.NodeName) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes.drop(name)
	delete(w.births, name)
	delete(w.undiminished, name)
	return Soon
}

// putPod takes in a pod. One that was bound to another node before is dropped from
// there first (movedPod).
func (w *world) putPod(p *corev1.Pod) Urgency {
	row := convertPod(p)
	class, volumes := convertClass(p, w.schedulers), convertUse(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.storage.settle(row.Key, volumes, &class)
	row.Class = w.intern(class)
	row.Budgets = w.classBudget[row.Class]
	old, had := w.pod(row.Key, row.Node)
	if had {
		w.classes.release(old.Class)
		if samePod(&old, &row) {
			return Never
		}
	}
	w.count(&row, 1)
	if had {
		w.count(&old, -1)
	}
	if row.Node == "" {
		w.pods.put(row.Key, row)
	} else {
		if had && old.Node == "" {
			w.pods.drop(row.Key)
		}
		w.nodes.putPod(row)
		w.used(row.Node, row.Class)
	}
	switch {
	case !row.Unschedulable.IsZero() && (old.Unschedulable.IsZero() || old.UID != row.UID):
		if w.waitingSince.IsZero() {
			w.waitingSince = time.Now()
		}
		return Soon
	case had && old.Node == row.Node && old.Deleting == row.Deleting && old.Class == row.Class && old.Gated == row.Gated &&
		old.Finished == row.Finished && old.UID == row.UID:
		return Never
	}
	return Later
}

// pod returns the pod of that key where it waits or on that node.
func (w *world) pod(key cluster.PodKey, node cluster.NodeName) (cluster.Pod, bool) {
	if p, ok := w.pods.get(key); ok {
		return p, true
	}
	if p := w.nodes.pod(key, node); p != nil {
		return *p, true
	}
	return cluster.Pod{}, false
}

// movedPod tells that a pod's name has come back on another node: the old pod is gone,
// even where nobody saw it go.
func movedPod(old, now *corev1.Pod) bool {
	return old.Spec.NodeName != "" && old.Spec.NodeName != now.Spec.NodeName
}

// samePod compares two rows of one key.
func samePod(a, b *cluster.Pod) bool {
	return a.UID == b.UID && a.Class == b.Class && a.Node == b.Node && a.Nominated == b.Nominated &&
		a.Unschedulable == b.Unschedulable && a.Created == b.Created && a.Deleting == b.Deleting &&
		(a.Owner == b.Owner || a.Owner != nil && b.Owner != nil && *a.Owner == *b.Owner) &&
		a.Gated == b.Gated && a.Finished == b.Finished && a.Mirror == b.Mirror && a.DoNotDisrupt == b.DoNotDisrupt &&
		a.SafeToEvict == b.SafeToEvict && a.LocalStorage == b.LocalStorage && a.GracePeriod == b.GracePeriod && a.Asked() == b.Asked() &&
		slices.Equal(a.Budgets, b.Budgets)
}

// dropPod forgets a pod that was last seen on that node, "" for one that waited.
func (w *world) dropPod(key cluster.PodKey, node cluster.NodeName) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	old, had := w.pod(key, node)
	if !had {
		return Never
	}
	w.storage.forget(key)
	w.count(&old, -1)
	if old.Node == "" {
		w.pods.drop(key)
	} else {
		w.nodes.dropPod(key, old.Node)
		w.used(old.Node, old.Class)
	}
	w.classes.release(old.Class)
	if old.Owner != nil && old.Owner.Kind == "Job" {
		delete(w.makers, old.Owner.UID) // it may have succeeded, and the Job's status says so only later
		w.compare(old.Owner.UID)
	}
	if n, ok := w.nodes.get(old.Node); ok && draining(n) {
		return Soon // the drain of that node may be done
	}
	return Later
}

func draining(n *cluster.Node) bool {
	for _, t := range n.Taints {
		if t.Key == cluster.TaintToBeDeleted {
			return true
		}
	}
	return false
}

// count keeps how many pods a controller has, and lets them share its name.
func (w *world) count(p *cluster.Pod, by int) {
	if p.Owner == nil {
		return
	}
	b := w.broods[p.Owner.UID]
	if b == nil {
		b = &brood{owner: p.Owner}
		w.broods[p.Owner.UID] = b
	}
	if *b.owner == *p.Owner {
		p.Owner = b.owner
	}
	if b.pods += by; b.pods <= 0 {
		delete(w.broods, p.Owner.UID)
	}
	if !p.Finished && p.Deleting.IsZero() {
		b.live += by
		w.compare(p.Owner.UID)
	}
}

func (w *world) intern(c cluster.PodClass) int {
	i, fresh := w.classes.intern(c)
	if fresh {
		w.classBudget[i] = w.budgetsOf(c)
	}
	return i
}

func (w *world) putDaemonSet(d *appsv1.DaemonSet) Urgency {
	pod := daemonSetPod(d.Namespace, &d.Spec.Template)
	class := convertClass(pod, w.schedulers)
	row := cluster.DaemonSet{Key: cluster.PodKey(d.Namespace + "/" + d.Name), UID: cluster.UID(d.UID)}
	w.mu.Lock()
	defer w.mu.Unlock()
	row.Class = w.intern(class)
	if old, had := w.daemonSets.get(row.Key); had {
		w.classes.release(old.Class)
		if old == row {
			return Never
		}
	}
	w.daemonSets.put(row.Key, row)
	return Later
}

func (w *world) dropDaemonSet(key cluster.PodKey) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old, had := w.daemonSets.get(key); had {
		w.classes.release(old.Class)
		w.daemonSets.drop(key)
	}
	return Later
}

func (w *world) putBudget(b *policyv1.PodDisruptionBudget) Urgency {
	key := b.Namespace + "/" + b.Name
	row := cluster.Budget{Key: key}
	if b.Status.ObservedGeneration >= b.Generation {
		row.Allowed = int(b.Status.DisruptionsAllowed)
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		selector = labels.Everything() // an unreadable budget protects its whole namespace
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	old, had := w.budgets.get(key)
	if was, ok := w.selectors[key]; !ok || was.selector.String() != selector.String() {
		w.selectors[key] = budgetSelector{namespace: b.Namespace, selector: selector}
		w.applyBudgets()
	}
	if had && old == row {
		return Never
	}
	w.budgets.put(key, row)
	return Later
}

func (w *world) dropBudget(key string) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.budgets.drop(key)
	delete(w.selectors, key)
	w.applyBudgets()
	return Later
}

// budgetsOf names the budgets that select pods of class c, sorted.
func (w *world) budgetsOf(c cluster.PodClass) []string {
	var out []string
	for _, key := range sortedKeys(w.selectors) {
		b := w.selectors[key]
		if b.namespace == c.Namespace && b.selector.Matches(labels.Set(c.Labels)) {
			out = append(out, key)
		}
	}
	return out
}

// applyBudgets follows a change of the set of budgets: every class is matched
// again, and pods whose budgets changed get them.
func (w *world) applyBudgets() {
	changed := false
	for i, c := range w.classes.rows {
		now := w.budgetsOf(c)
		if !reflect.DeepEqual(now, w.classBudget[i]) {
			w.classBudget[i], changed = now, true
		}
	}
	if !changed {
		return
	}
	w.pods.taken = nil
	for i := range w.pods.rows {
		w.pods.rows[i].Budgets = w.classBudget[w.pods.rows[i].Class]
	}
	w.nodes.each(func(p *cluster.Pod) bool {
		now := w.classBudget[p.Class]
		changed := !slices.Equal(p.Budgets, now)
		p.Budgets = now
		return changed
	})
}

// bound returns the Nodes with their pods, and the pods that have none.
func (w *world) bound() ([]*cluster.Node, []cluster.Pod) {
	nodes, lost := w.nodes.snapshot()
	pods := w.pods.snapshot()
	if len(lost) > 0 {
		pods = slices.Concat(pods, lost)
	}
	return nodes, pods
}
