package cluster

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
)

// Snapshot is one moment of the whole world that the scaler decides on. It is a
// value: it marshals to JSON and back without loss, nothing in it is written to once
// it is handed out, and the order of its slices means nothing.
//
// Snapshots of one observer share what has not changed: a Node that is the same pointer
// as in an earlier Snapshot is the same Node with the same pods, so that a round costs
// what changed and not what exists. Nothing depends on that sharing for its result.
type Snapshot struct {
	Now     time.Time   `json:"now"`
	Groups  []NodeGroup `json:"groups,omitempty"`
	Nodes   []*Node     `json:"nodes,omitempty"`
	Classes []PodClass  `json:"classes,omitempty"`
	// Pods are those that are not bound to one of Nodes: pending, gated, nominated, or
	// bound to a Node that is not listed. The others are in Node.Pods.
	Pods        []Pod        `json:"pods,omitempty"`
	DaemonSets  []DaemonSet  `json:"daemonSets,omitempty"`
	Controllers []Controller `json:"controllers,omitempty"`
	// GoneControllers are those that were deleted while pods of theirs are still there.
	GoneControllers []UID    `json:"goneControllers,omitempty"`
	Budgets         []Budget `json:"budgets,omitempty"`
	// Namespaces are those whose labels a term of some class may ask for.
	Namespaces []Namespace `json:"namespaces,omitempty"`
	// Outcomes are what became of the last Plan's actions.
	Outcomes []Outcome `json:"outcomes,omitempty"`
	// ControlPlaneVersion is the version of the API server, "v1.36.3"; empty: not known.
	ControlPlaneVersion string `json:"controlPlaneVersion,omitempty"`
	// Stale says why the Kubernetes half of the Snapshot may be old (the API server
	// does not answer). Empty: it is live. Nothing is deleted on stale facts.
	Stale string `json:"stale,omitempty"`
}

// Outcome is what became of one action of the last Plan.
type Outcome struct {
	Action   string     `json:"action"` // "grow", "cordon", "uncordon", "evict", "terminate"
	Group    GroupID    `json:"group,omitempty"`
	Node     NodeName   `json:"node,omitempty"`
	Pod      PodKey     `json:"pod,omitempty"`
	Instance InstanceID `json:"instance,omitempty"`
	From     int        `json:"from,omitempty"`
	To       int        `json:"to,omitempty"`
	At       time.Time  `json:"at"`
	// Error is empty on success. Kind is the provider's error kind or an API reason.
	Error string `json:"error,omitempty"`
	Kind  string `json:"kind,omitempty"`
}

// AllPods yields every pod: first the pods of the Nodes, then the pods without a Node. The pods
// are shared and are not to be changed.
func (s *Snapshot) AllPods() iter.Seq[*Pod] {
	return func(yield func(*Pod) bool) {
		for _, n := range s.Nodes {
			for i := range n.Pods {
				if !yield(&n.Pods[i]) {
					return
				}
			}
		}
		for i := range s.Pods {
			if !yield(&s.Pods[i]) {
				return
			}
		}
	}
}

// PodCount is how many pods AllPods yields.
func (s *Snapshot) PodCount() int {
	total := len(s.Pods)
	for _, n := range s.Nodes {
		total += len(n.Pods)
	}
	return total
}

// Seated returns the Snapshot with every pod of Pods that is bound to one of Nodes
// moved to it, for Snapshots that were written by hand or recorded by an older
// version. A Node that gains pods is a copy; a Snapshot in which no pod has to move is
// returned as it is.
func (s *Snapshot) Seated() Snapshot {
	out := *s
	bound := false
	for i := range s.Pods { // by index: a Pod is large, and all of them are looked at in every round
		if s.Pods[i].Node != "" {
			bound = true
			break
		}
	}
	if !bound {
		return out
	}
	at := make(map[NodeName]int, len(s.Nodes))
	for i, n := range s.Nodes {
		at[n.Name] = i
	}
	moved := make(map[int][]Pod)
	out.Pods = nil
	for i := range s.Pods {
		if n, ok := at[s.Pods[i].Node]; ok && s.Pods[i].Node != "" {
			moved[n] = append(moved[n], s.Pods[i])
		} else {
			out.Pods = append(out.Pods, s.Pods[i])
		}
	}
	if len(moved) == 0 {
		return *s
	}
	out.Nodes = slices.Clone(s.Nodes)
	for _, i := range slices.Sorted(maps.Keys(moved)) {
		n := *s.Nodes[i]
		n.Pods = slices.Concat(n.Pods, moved[i])
		slices.SortStableFunc(n.Pods, func(a, b Pod) int { return strings.Compare(string(a.Key), string(b.Key)) })
		out.Nodes[i] = &n
	}
	return out
}
