// Package decision holds the nouns of the engine's answer: Plan and its Actions, Held
// reasons and their rules, Explanation; and of its question, beside the Snapshot: Policy
// and Memory.
//
// Layer 0. Packages that carry a Plan out or tell of it import this package and not the
// engine. It refuses to decide anything: every value here is made by agent/plan, by an
// operator's settings or by a decoder.
package decision

import (
	"fmt"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Plan is what one round decided. String is the journal line, the golden file and
// the replay oracle at once.
type Plan struct {
	Actions []Action
	Held    []Held
	// Rollouts are how the node groups stand whose nodes are replaced. String does not tell them.
	Rollouts []Rollout
	// Wake is when a timer of the plan next runs out (an unneeded node's, a
	// backoff's, a provision timeout); zero when only a change of the world can
	// matter.
	Wake time.Time
}

// String renders every action and every held thing, one a line, actions first in
// the order in which they are to be done.
func (p Plan) String() string {
	var b strings.Builder
	for _, a := range p.Actions {
		fmt.Fprintln(&b, a)
	}
	for _, h := range p.Held {
		fmt.Fprintln(&b, h)
	}
	return b.String()
}

// Action is one effect. The set is closed: Grow, Cordon, Uncordon, Soften, Evict,
// Terminate.
type Action interface {
	fmt.Stringer
	action()
}

// Grow raises a group's target from From to To, as a compare-and-set.
type Grow struct {
	Group    cluster.GroupID
	From, To int
	Pods     []cluster.PodKey // those that the new machines are for, sorted
	Expected int              // pods counted that do not exist yet (cluster.Controller)
	Rule     string
	Why      string
}

// Cordon marks a node for deletion: taint ToBeDeletedByClusterAutoscaler and
// spec.unschedulable, both marked as ours.
type Cordon struct {
	Node cluster.NodeName
	UID  cluster.UID
	Rule string
	Why  string
}

// Uncordon takes back what Cordon did, and only what Cordon did.
type Uncordon struct {
	Node cluster.NodeName
	UID  cluster.UID
	Rule string
	Why  string
}

// Evict asks the Eviction API to move a pod off a node that is being drained. The
// UID is a precondition; Grace caps the pod's own grace period. Why is empty where the
// node goes because nothing needs it.
type Evict struct {
	Pod   cluster.PodKey
	UID   cluster.UID
	Node  cluster.NodeName
	Grace time.Duration
	Why   string
}

// Terminate deletes an instance and lowers its group's target by one. Node is
// empty for an instance that never became one. NodeUID lets act re-check that the
// node is still ours to take and still empty.
type Terminate struct {
	Group    cluster.GroupID
	Instance cluster.InstanceID
	Node     cluster.NodeName
	NodeUID  cluster.UID
	Forced   bool // pods that must move are still on the node, and end with it
	Rule     string
	Why      string
}

func (Grow) action()      {}
func (Cordon) action()    {}
func (Uncordon) action()  {}
func (Evict) action()     {}
func (Terminate) action() {}

// String renders the action as one line of the journal.
func (a Grow) String() string {
	return fmt.Sprintf("grow %s %d->%d for %d pods [%s] %s", a.Group, a.From, a.To, len(a.Pods)+a.Expected, a.Rule, a.Why)
}

// String renders the action as one line of the journal.
func (a Cordon) String() string { return fmt.Sprintf("cordon %s [%s] %s", a.Node, a.Rule, a.Why) }

// String renders the action as one line of the journal.
func (a Uncordon) String() string { return fmt.Sprintf("uncordon %s [%s] %s", a.Node, a.Rule, a.Why) }

// String renders the action as one line of the journal.
func (a Evict) String() string { return fmt.Sprintf("evict %s from %s", a.Pod, a.Node) }

// String renders the action as one line of the journal.
func (a Terminate) String() string {
	return fmt.Sprintf("terminate %s %s node=%s [%s] %s", a.Group, a.Instance, a.Node, a.Rule, a.Why)
}

// Held says what was not done and why, by rule ID. Count pods share one Held when
// they share a class and a reason.
type Held struct {
	Kind  string `json:"kind"` // "pod", "node", "group", "instance", "cluster"
	Name  string `json:"name"` // of the first by name, where Count > 1
	Count int    `json:"count,omitempty"`
	Rule  string `json:"rule"`
	Why   string `json:"why"`
	// Groups is Why by node group, for a pod that no group can help (U5).
	Groups []Refusal `json:"groups,omitempty"`

	Class int `json:"-"` // of the pods, within the round
}

// Refusal is why one node group, or one node, does not take a pod.
type Refusal struct {
	Name string `json:"name"`
	Rule string `json:"rule,omitempty"` // empty: it could
	Why  string `json:"why"`
}

// String renders the reason as one line of the journal.
func (h Held) String() string {
	more := ""
	if h.Count > 1 {
		more = fmt.Sprintf(" (and %d more)", h.Count-1)
	}
	return fmt.Sprintf("held %s %s%s [%s] %s", h.Kind, h.Name, more, h.Rule, h.Why)
}

// SoftTaint puts the taint DeletionCandidateOfClusterAutoscaler (PreferNoSchedule) on a
// node, so that the scheduler prefers others while it waits to go; with Off it takes
// the taint away.
type SoftTaint struct {
	Node cluster.NodeName
	UID  cluster.UID
	Off  bool
	Rule string
	Why  string
}

func (SoftTaint) action() {}

// String renders the action as one line of the journal.
func (a SoftTaint) String() string {
	verb := "soften"
	if a.Off {
		verb = "unsoften"
	}
	return fmt.Sprintf("%s %s [%s] %s", verb, a.Node, a.Rule, a.Why)
}
