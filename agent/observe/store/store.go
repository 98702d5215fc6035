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
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/devices"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/template"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/volumes"
)

// Urgency is how soon a change deserves a round.
type Urgency int

// The urgencies.
const (
	Never Urgency = iota // changes nothing that a decision reads
	Later                // may start or stop a timer: within seconds
	Soon                 // a pod is unschedulable, or a node came, went or changed: now
)

// Store is the Kubernetes half of a Snapshot, kept up to date by watch events.
type Store struct {
	mu          sync.Mutex
	schedulers  []string
	classes     classes
	nodes       nodeTable                          // with their bound pods
	pods        table[cluster.PodKey, cluster.Pod] // without a node
	daemonSets  table[cluster.PodKey, cluster.DaemonSet]
	templates   templates
	budgets     table[string, cluster.Budget]
	namespaces  table[string, cluster.Namespace]
	volumes     *volumes.Index
	devices     *devices.Index
	nodeLimits  map[cluster.NodeName]map[string]int64 // of CSINodes
	attachments attachments
	// fullLimits are the limits of nodes whose stored Node shows less (effectiveLimits).
	fullLimits            map[cluster.NodeName]map[string]int64
	controllers           map[cluster.UID]controller
	podsByController      map[cluster.UID]*ownedPods
	incompleteControllers map[cluster.UID]controller              // controllers with pods still to be created; desired counts these
	gone                  []cluster.UID                           // controllers that were deleted while pods of theirs are there
	sizes                 map[cluster.UID]templateSize            // of controllers, what their templates ask for
	bare                  map[cluster.UID]bareTemplate            // of controllers, templates whose sizes LimitRanges may add to
	newSizes              map[cluster.UID]bool                    // controllers with pods whose sizes have changed since the last Snapshot
	quotas                map[string]map[string]quota             // by namespace and name
	lastMissing           []cluster.Controller                    // the last result of missingPods; nil when it changed since
	firstSeen             map[cluster.NodeName]template.FirstSeen // of nodes that were seen soon after they registered
	selectors             map[string]budgetSelectors              // by namespace
	budgetsOfClass        map[int][]string
	// unschedulableSince is when the first pod that no round has seen yet was seen to be
	// Unschedulable, by this machine's clock (the API's stamps have whole seconds).
	unschedulableSince time.Time
}

// firstSeenWithin is how young a Node must be when it is first seen for its labels and
// taints to count as the ones that it registered with.
const firstSeenWithin = 30 * time.Second

func New(schedulers []string) *Store {
	return &Store{
		schedulers:            schedulers,
		templates:             newTemplates(),
		controllers:           map[cluster.UID]controller{},
		sizes:                 map[cluster.UID]templateSize{},
		bare:                  map[cluster.UID]bareTemplate{},
		podsByController:      map[cluster.UID]*ownedPods{},
		quotas:                map[string]map[string]quota{},
		incompleteControllers: map[cluster.UID]controller{},
		firstSeen:             map[cluster.NodeName]template.FirstSeen{},
		selectors:             map[string]budgetSelectors{},
		budgetsOfClass:        map[int][]string{},
		volumes:               volumes.NewIndex(),
		devices:               devices.NewIndex(),
		nodeLimits:            map[cluster.NodeName]map[string]int64{},
		attachments:           newAttachments(),
		fullLimits:            map[cluster.NodeName]map[string]int64{},
	}
}

// Snapshot returns the Kubernetes half of a Snapshot and the version of the nodes in it.
// evidence is nil while that version is known: collecting it costs two maps.
func (s *Store) Snapshot(known int) (snapshot cluster.Snapshot, version int, evidence *template.Evidence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	snapshot, version = s.contents(), s.nodes.version
	if version != known {
		evidence = &template.Evidence{Nodes: snapshot.Nodes, Classes: snapshot.Classes, FirstSeen: maps.Clone(s.firstSeen), FullLimits: maps.Clone(s.fullLimits), NoDevices: !s.devices.Read()}
	}
	return snapshot, version, evidence
}

// TakeUnschedulableSince returns since when, by this machine's clock, a pod that no
// earlier call covered has been seen Unschedulable; zero when none has. It resets the
// mark.
func (s *Store) TakeUnschedulableSince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := s.unschedulableSince
	s.unschedulableSince = time.Time{}
	return since
}

// contents is Snapshot for a caller that holds mu.
func (s *Store) contents() cluster.Snapshot {
	s.applyNewSizes()
	s.applyDevices()
	nodes, pods := s.nodesAndPods()
	return cluster.Snapshot{
		Nodes:       nodes,
		Classes:     s.classes.snapshot(),
		Pods:        pods,
		DaemonSets:  s.daemonSets.snapshot(),
		Budgets:     s.budgets.snapshot(),
		Controllers: s.missingPods(),

		GoneControllers: s.gone,
		Namespaces:      s.namespacesIfSelected(),
	}
}

func (s *Store) PutNode(n *corev1.Node) Urgency {
	row := convert.Node(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	old, had := s.nodes.get(row.Name)
	if had && old.UID != row.UID {
		had, old = false, nil
	}
	row.OperatorTaints = operatorTaints(old, &row, n)
	if time.Since(row.Created) < firstSeenWithin {
		s.noteFirstSeen(&row, had)
	} else if !had {
		s.noteKubeletLabels(&row, n)
	}
	var pods []cluster.Pod
	if k := s.nodes.entries[row.Name]; k != nil {
		pods = k.node.Pods // seen before their Node
	}
	row.VolumeLimits, row.Devices = s.effectiveLimits(row.Name, pods), s.devices.OnNode(row.Name)
	if had {
		row.Pods = old.Pods
		if reflect.DeepEqual(*old, row) {
			return Never
		}
	}
	s.nodes.put(row)
	return Soon
}

// noteKubeletLabels keeps of a Node that is old at first sight which labels its kubelet registered it with.
func (s *Store) noteKubeletLabels(row *cluster.Node, n *corev1.Node) {
	if labels := convert.KubeletLabels(n); len(labels) > 0 {
		s.firstSeen[row.Name] = template.FirstSeen{UID: row.UID, Labels: labels}
	}
}

// noteFirstSeen keeps what a Node showed when it registered: at first sight, and the taints that
// controllers add in the moments after that.
func (s *Store) noteFirstSeen(row *cluster.Node, had bool) {
	if !had {
		s.firstSeen[row.Name] = template.FirstSeen{UID: row.UID, Labels: row.Labels, Taints: row.Taints}
		return
	}
	seen, known := s.firstSeen[row.Name]
	if !known || seen.UID != row.UID {
		return
	}
	for _, t := range row.Taints {
		if !slices.Contains(seen.Taints, t) && !slices.Contains(row.OperatorTaints, t) {
			seen.Taints = append(slices.Clip(seen.Taints), t)
		}
	}
	s.firstSeen[row.Name] = seen
}

// operatorTaints are the taints of a Node that a person has set: those that were before, and those
// that are new where a person wrote the list of taints last. old is nil at first sight.
func operatorTaints(old, row *cluster.Node, n *corev1.Node) (out []cluster.Taint) {
	for _, t := range row.Taints {
		byPerson := false
		if old != nil && slices.Contains(old.Taints, t) {
			byPerson = slices.Contains(old.OperatorTaints, t)
		} else {
			byPerson = convert.PersonTaints(n)
		}
		if byPerson {
			out = append(out, t)
		}
	}
	return out
}

func (s *Store) DeleteNode(name cluster.NodeName) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes.delete(name)
	delete(s.firstSeen, name)
	delete(s.fullLimits, name)
	return Soon
}

func (s *Store) intern(c cluster.PodClass) int {
	i, fresh := s.classes.intern(c)
	if fresh {
		s.budgetsOfClass[i] = s.matchingBudgets(&c)
	}
	return i
}

// nodesAndPods returns the Nodes with their pods, and the pods without a Node.
func (s *Store) nodesAndPods() ([]*cluster.Node, []cluster.Pod) {
	nodes, lost := s.nodes.snapshot()
	pods := s.pods.snapshot()
	if len(lost) > 0 {
		pods = slices.Concat(pods, lost)
	}
	return nodes, pods
}
