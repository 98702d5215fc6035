package cluster

import "time"

// Snapshot is one moment of the whole world that the scaler decides on. It is a
// value: it marshals to JSON and back without loss, nothing in it is shared with
// an informer, and the order of its slices means nothing.
type Snapshot struct {
	Now         time.Time    `json:"now"`
	Groups      []NodeGroup  `json:"groups,omitempty"`
	Nodes       []Node       `json:"nodes,omitempty"`
	Classes     []PodClass   `json:"classes,omitempty"`
	Pods        []Pod        `json:"pods,omitempty"`
	DaemonSets  []DaemonSet  `json:"daemonSets,omitempty"`
	Controllers []Controller `json:"controllers,omitempty"`
	Budgets     []Budget     `json:"budgets,omitempty"`
	// Namespaces are those whose labels a term of some class may ask for.
	Namespaces []Namespace `json:"namespaces,omitempty"`
	// Outcomes are what became of the last Plan's actions.
	Outcomes []Outcome `json:"outcomes,omitempty"`
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
