package store

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/template"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/volumes"
)

// Urgency is how soon a change deserves a round.
type Urgency int

// The urgencies.
const (
	Never Urgency = iota // changes nothing that a decision reads
	Later                // may start or stop a timer: within seconds
	Soon                 // a pod waits, or a node came, went or changed: now
)

// Store is the Kubernetes half of a Snapshot, kept up to date by watch events.
type Store struct {
	mu          sync.Mutex
	schedulers  []string
	classes     classes
	nodes       nodeTable                          // with the pods that are bound
	pods        table[cluster.PodKey, cluster.Pod] // those that are not bound
	daemonSets  table[cluster.PodKey, cluster.DaemonSet]
	budgets     table[string, cluster.Budget]
	namespaces  table[string, cluster.Namespace]
	volumes     *volumes.Index
	nodeLimits  map[cluster.NodeName]map[string]int64 // of CSINodes
	attachments attachments
	// undiminished are the limits of nodes whose rows show less (limitsOf).
	fullLimits            map[cluster.NodeName]map[string]int64
	controllers           map[cluster.UID]controller
	podsByController      map[cluster.UID]*ownedPods
	incompleteControllers map[cluster.UID]controller              // those with pods still to be made, desired less what is there
	lastMissing           []cluster.Controller                    // the last slice of them handed out; nil when they changed since
	firstSeen             map[cluster.NodeName]template.FirstSeen // of nodes that were seen soon after they registered
	selectors             map[string]budgetSelector
	budgetsOfClass        map[int][]string
	// waitingSince is when the first pod that no round has seen yet was seen to be
	// Unschedulable, by this machine's clock (the API's stamps have whole seconds).
	unschedulableSince time.Time
}

// firstSeenWithin is how young a Node must be when it is first seen for its labels and
// taints to count as the ones that it registered with.
const firstSeenWithin = 30 * time.Second

func New(schedulers []string) *Store {
	return &Store{
		schedulers:            schedulers,
		controllers:           map[cluster.UID]controller{},
		podsByController:      map[cluster.UID]*ownedPods{},
		incompleteControllers: map[cluster.UID]controller{},
		firstSeen:             map[cluster.NodeName]template.FirstSeen{},
		selectors:             map[string]budgetSelector{},
		budgetsOfClass:        map[int][]string{},
		volumes:               volumes.NewIndex(),
		nodeLimits:            map[cluster.NodeName]map[string]int64{},
		attachments:           newAttachments(),
		fullLimits:            map[cluster.NodeName]map[string]int64{},
	}
}

// Snapshot returns the Kubernetes half of a Snapshot and the version of the nodes in it.
// evidence is nil while that version is known: collecting it costs two maps.
func (w *Store) Snapshot(known int) (s cluster.Snapshot, version int, evidence *template.Evidence) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, version = w.contents(), w.nodes.version
	if version != known {
		evidence = &template.Evidence{Nodes: s.Nodes, FirstSeen: maps.Clone(w.firstSeen), FullLimits: maps.Clone(w.fullLimits)}
	}
	return s, version, evidence
}

// TakeUnschedulableSince returns since when, by this machine's clock, a pod that no
// earlier call covered has been seen Unschedulable; zero when none has. It resets the
// mark.
func (w *Store) TakeUnschedulableSince() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	since := w.unschedulableSince
	w.unschedulableSince = time.Time{}
	return since
}

// contents is Snapshot for a caller that holds mu.
func (w *Store) contents() cluster.Snapshot {
	nodes, pods := w.nodesAndPods()
	return cluster.Snapshot{
		Nodes:       nodes,
		Classes:     w.classes.snapshot(),
		Pods:        pods,
		DaemonSets:  w.daemonSets.snapshot(),
		Budgets:     w.budgets.snapshot(),
		Controllers: w.missingPods(),
		Namespaces:  w.namespacesIfSelected(),
	}
}

func (w *Store) PutNode(n *corev1.Node) Urgency {
	row := convert.Node(n)
	w.mu.Lock()
	defer w.mu.Unlock()
	old, had := w.nodes.get(row.Name)
	if (!had || old.UID != row.UID) && time.Since(row.Created) < firstSeenWithin {
		w.firstSeen[row.Name] = template.FirstSeen{UID: row.UID, Labels: row.Labels, Taints: row.Taints}
	}
	var pods []cluster.Pod
	if k := w.nodes.entries[row.Name]; k != nil {
		pods = k.node.Pods // they may have been seen before their Node
	}
	row.VolumeLimits = w.effectiveLimits(row.Name, pods)
	if had {
		row.Pods = old.Pods
		if reflect.DeepEqual(*old, row) {
			return Never
		}
	}
	w.nodes.put(row)
	return Soon
}

func (w *Store) DeleteNode(name cluster.NodeName) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes.delete(name)
	delete(w.firstSeen, name)
	delete(w.fullLimits, name)
	return Soon
}

func (w *Store) intern(c cluster.PodClass) int {
	i, fresh := w.classes.intern(c)
	if fresh {
		w.budgetsOfClass[i] = w.matchingBudgets(c)
	}
	return i
}

// nodesAndPods returns the Nodes with their pods, and the pods without a Node.
func (w *Store) nodesAndPods() ([]*cluster.Node, []cluster.Pod) {
	nodes, lost := w.nodes.snapshot()
	pods := w.pods.snapshot()
	if len(lost) > 0 {
		pods = slices.Concat(pods, lost)
	}
	return nodes, pods
}
