package decision

import (
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Query names what Explain is asked about. Kind is "pod", "node" or "group"; a pod is
// "namespace/name", or a name alone where only one pod has it or it is in default.
type Query struct{ Kind, Name string }

// Explanation says why a thing is as it is. Its field names are stable; fields may be
// added. Exactly one of Pod, Node and Group is set when Found.
type Explanation struct {
	Kind string    `json:"kind"`
	Name string    `json:"name"`
	At   time.Time `json:"at"`
	// Found is false when there is no such thing in the Snapshot; Summary then says
	// which names are near.
	Found   bool   `json:"found"`
	Summary string `json:"summary"`
	// Verdicts are what the plan of this very Snapshot says of the thing, the decisive
	// one first: the same rules and words as in the journal.
	Verdicts []Verdict `json:"verdicts"`
	// Cluster is what holds the whole cluster back, whatever the thing.
	Cluster []Verdict   `json:"cluster,omitempty"`
	Pod     *PodFacts   `json:"pod,omitempty"`
	Node    *NodeFacts  `json:"node,omitempty"`
	Group   *GroupFacts `json:"group,omitempty"`
}

// Verdict is one rule's word. Count pods share it when it was said of a class.
type Verdict struct {
	Rule  string `json:"rule"`
	Why   string `json:"why"`
	Count int    `json:"count,omitempty"`
	// About is set where the verdict is about something else than the thing asked for:
	// an instance of a group.
	About string `json:"about,omitempty"`
}

// Judgement is what a pod hears from all groups or from all nodes.
type Judgement struct {
	// Words is the sum as kube-scheduler writes it: "0/3 node groups can help: 2
	// Insufficient cpu, 1 ...".
	Words string `json:"words"`
	Could int    `json:"could"`
	Total int    `json:"total"`
	// Refusals has every group or node by name. A group or node that could help has no rule.
	Refusals []Refusal `json:"refusals"`
}

// GroupFacts is what Explain tells of a node group.
type GroupFacts struct {
	// Provider is the one of several that the group is of; empty where there is one.
	Provider string `json:"provider,omitempty"`

	Min    int `json:"min"`
	Max    int `json:"max"`
	Target int `json:"target"` // as the cloud was last read
	// Counted is the target that the engine reckons with: a read may be behind what was
	// asked for.
	Counted   int `json:"countedTarget"`
	Instances int `json:"instances"`
	Nodes     int `json:"nodes"`
	Upcoming  int `json:"coming"` // machines that are awaited and are not Nodes yet
	Removing  int `json:"leaving"`
	// Price is what a machine costs an hour, and where that comes from.
	Price       float64   `json:"price,omitempty"`
	PriceSource string    `json:"priceSource,omitempty"`
	ReadAt      time.Time `json:"readAt"`
	CanGrow     bool      `json:"canGrow"`
	// NoGrowth are all reasons why it cannot grow now, the decisive one first.
	NoGrowth  []Verdict `json:"cannotGrow,omitempty"`
	CanShrink bool      `json:"canShrink"`
	NoShrink  []Verdict `json:"cannotShrink,omitempty"`
	// Backoff are its pauses, one for each cause.
	Backoff  []Backoff         `json:"backoff,omitempty"`
	Failures []cluster.Failure `json:"failures,omitempty"`
	Warnings []string          `json:"warnings,omitempty"`
	Template TemplateFacts     `json:"template"`
	// Unneeded are its nodes that nothing needs, and since when.
	Unneeded map[cluster.NodeName]time.Time `json:"unneeded,omitempty"`
	// Reserved is how many pods count on its upcoming machines.
	Reserved int `json:"promisedPods"`
}

// TemplateFacts describes the machine that the group would add.
type TemplateFacts struct {
	Spec        string            `json:"spec,omitempty"`
	Unknown     string            `json:"unknown,omitempty"`
	Allocatable cluster.Resources `json:"allocatable"`
	DaemonSets  []cluster.PodKey  `json:"daemonSets,omitempty"` // those that take room on it
	// DaemonShares are what they take of it, and from where that is known.
	DaemonShares []DaemonShare     `json:"daemonShares,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Taints       []cluster.Taint   `json:"taints,omitempty"`
	// Zones are those over which the group's machines are spread and of which it promises none.
	Zones []string `json:"zones,omitempty"`
	// Learnt is what the group's own nodes taught about it, in words.
	Learnt []string `json:"learnt,omitempty"`
}

// NodeFacts is what Explain tells of a node.
type NodeFacts struct {
	Group    cluster.GroupID    `json:"group,omitempty"` // empty: no node group of the agent's has it
	Instance cluster.InstanceID `json:"instance,omitempty"`
	Phase    cluster.Phase      `json:"phase,omitempty"`
	// State is "ready", "starting", "out" (not Ready, or on its way out) or "marked" (the
	// agent drains it).
	State string `json:"state"`
	// Utilisation is the larger share of cpu and memory that is requested; Limit is what
	// it must not exceed for the node to go.
	Utilisation float64 `json:"utilisation"`
	Limit       float64 `json:"utilisationLimit"`
	// Checks are all conditions for the node to go, in the order in which the engine
	// asks them. A failed check keeps the node.
	Checks       []Check       `json:"checks,omitempty"`
	Blockers     []Blocker     `json:"blockers,omitempty"`     // every blocker of every pod
	Destinations []Destination `json:"destinations,omitempty"` // of every pod that would move
	Terminating  int           `json:"leavingPods,omitempty"`  // told to go already
	Ignored      int           `json:"passengers,omitempty"`   // DaemonSet, static and finished pods, which go with the node
	Since        time.Time     `json:"unneededSince,omitzero"`
	UnreadyFrom  time.Time     `json:"unreadySince,omitzero"`
	MayGo        time.Time     `json:"mayGoAt,omitzero"` // when its own timer is over
	// Drift is in what its machine differs from what its group would start today.
	Drift []cluster.Difference `json:"drift,omitempty"`
}

// Check is one condition for a node to go.
type Check struct {
	Rule string `json:"rule"` // the rule that holds the node when it fails
	OK   bool   `json:"ok"`
	Why  string `json:"why"`
}

// Blocker is one reason why a pod must not be evicted.
type Blocker struct {
	Pod  cluster.PodKey `json:"pod"`
	Name string         `json:"name"` // of the drain rule
	Why  string         `json:"why"`
}

// Destination is where a pod of the node could move: to Could nodes, of which First
// is the first by name. Where there is none, Why sums up the refusals of all; beside nodes it
// says when the pod can be bound there.
type Destination struct {
	Pod   cluster.PodKey   `json:"pod"`
	Could int              `json:"could"`
	First cluster.NodeName `json:"first,omitempty"`
	Why   string           `json:"why,omitempty"`
}

// PodFacts is what Explain tells of a pod.
type PodFacts struct {
	// State is "waiting", "running", "terminating", "finished", "gated", "nominated",
	// "unjudged" (the scheduler has not tried it yet) or "daemon".
	State   string           `json:"state"`
	Created time.Time        `json:"created"`
	Waits   time.Time        `json:"unschedulableSince,omitzero"` // since the scheduler said so
	Node    cluster.NodeName `json:"node,omitempty"`              // bound to, or nominated for
	Alike   int              `json:"alike,omitempty"`             // pending pods of the same class, this one included
	// Reservation is the upcoming machine that the pod counts on.
	Reservation *ReservedMachine `json:"promise,omitempty"`
	// Groups and Nodes are why none of them takes the pod now; only for a pod that waits, or
	// whose machine the cloud ends.
	Groups *Judgement `json:"groups,omitempty"`
	Nodes  *Judgement `json:"nodes,omitempty"`
	// Blockers are why a pod that runs would keep its node from being drained.
	Blockers []Blocker `json:"blockers,omitempty"`
}

// ReservedMachine is a pod's place on a machine that is upcoming.
type ReservedMachine struct {
	Group cluster.GroupID `json:"group"`
	Since time.Time       `json:"since,omitzero"`
	Until time.Time       `json:"until,omitzero"` // when the agent stops waiting for the machine
}
