package observe

import (
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

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

func (w *world) intern(c cluster.PodClass) int {
	i, fresh := w.classes.intern(c)
	if fresh {
		w.classBudget[i] = w.budgetsOf(c)
	}
	return i
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
