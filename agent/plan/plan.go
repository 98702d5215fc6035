// Package plan decides: Decide(Snapshot, Memory, Policy) is a function of three
// values that returns a Plan and the next Memory.
//
// Floor 1. Equal inputs give equal outputs, whatever the order of slices. It
// refuses to do I/O, to read a clock (time is Snapshot.Now), to use global chance,
// and to delete anything on stale facts. Effects are values: agent/act carries
// them out, re-checking each.
package plan

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

	class int // of the pods, within the round
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

// Policy is what an operator may set, with the field's defaults; the environment
// names are AUTOSCALER_SCALING_*.
type Policy struct {
	Expander                    string        `default:"least-waste"`          // least-waste, price, priority, most-pods, least-nodes, random, or several: the next decides what the one before leaves open
	RandomSeed                  uint64        `split_words:"true" default:"1"` // of the expander random
	MaxNodesTotal               int           `split_words:"true" default:"0"` // whole cluster, control plane included; 0: no limit
	MaxCoresTotal               int64         `split_words:"true" default:"0"` // cores; 0: no limit
	MaxMemoryTotal              int64         `split_words:"true" default:"0"` // GiB; 0: no limit
	MinCoresTotal               int64         `split_words:"true" default:"0"` // cores; scale-down keeps them
	MinMemoryTotal              int64         `split_words:"true" default:"0"` // GiB; scale-down keeps them
	GPUTotal                    Bounds        `envconfig:"GPU_TOTAL"`          // nvidia.com/gpu:0:16, of any extended resource; several, comma-separated
	BalanceSimilarNodeGroups    bool          `split_words:"true" default:"false"`
	BalanceIgnoreLabels         []string      `split_words:"true"` // more labels in which similar groups may differ
	BalanceLabels               []string      `split_words:"true"` // when given, groups are similar that agree in these labels
	ExpendablePodsCutoff        int32         `split_words:"true" default:"-10"`
	NewPodDelay                 time.Duration `split_words:"true" default:"0s"`
	MaxNodeProvisionTime        time.Duration `split_words:"true" default:"15m"`
	MaxNodeStartupTime          time.Duration `split_words:"true" default:"15m"`
	BackoffInitial              time.Duration `split_words:"true" default:"5m"`
	BackoffMax                  time.Duration `split_words:"true" default:"30m"`
	BackoffReset                time.Duration `split_words:"true" default:"3h"`
	ScaleDown                   bool          `split_words:"true" default:"true"`
	UtilizationThreshold        float64       `split_words:"true" default:"0.5"`
	GPUUtilizationThreshold     float64       `envconfig:"GPU_UTILIZATION_THRESHOLD" default:"0.5"` // of nodes that offer GPUs: only these count there
	UnneededFor                 time.Duration `split_words:"true" default:"10m"`
	UnreadyFor                  time.Duration `split_words:"true" default:"20m"`
	DelayAfterAdd               time.Duration `split_words:"true" default:"10m"`
	DelayAfterFailure           time.Duration `split_words:"true" default:"3m"`
	DelayAfterTaint             time.Duration `split_words:"true" default:"5s"` // between Cordon and the first Evict or Terminate
	MaxEmptyAtOnce              int           `split_words:"true" default:"10"`
	MaxDrainAtOnce              int           `split_words:"true" default:"10"`
	MaxPodEvictionTime          time.Duration `split_words:"true" default:"2m"` // beyond the pod's own grace period
	MaxGracefulTermination      time.Duration `split_words:"true" default:"10m"`
	DrainPriority               DrainOrder    `envconfig:"DRAIN_PRIORITY_CONFIG"` // 0:60,1000:120: lower priorities are evicted first, each with its cap of grace in seconds
	EvictDaemonsOccupied        bool          `envconfig:"DAEMONSET_EVICTION_FOR_OCCUPIED_NODES" default:"true"`
	EvictDaemonsEmpty           bool          `envconfig:"DAEMONSET_EVICTION_FOR_EMPTY_NODES" default:"false"`
	NodeDeletionDelayTimeout    time.Duration `split_words:"true" default:"2m"`
	Consolidate                 string        `default:"off"`                     // replace nodes by fewer or cheaper machines: priced (only where prices are known), always, or off
	ConsolidateAfter            time.Duration `split_words:"true" default:"30m"`  // how long a saving must be real
	ConsolidateSaving           float64       `split_words:"true" default:"0.15"` // the least share of the price that it must save
	MaxBulkSoftTaintCount       int           `split_words:"true" default:"10"`   // soft taints changed in one round; 0: none is put
	SkipNodesWithSystemPods     bool          `split_words:"true" default:"true"`
	SkipNodesWithLocalStorage   bool          `split_words:"true" default:"true"`
	IgnoreDaemonSetsUtilization bool          `envconfig:"IGNORE_DAEMONSETS_UTILIZATION" default:"false"`
	OKTotalUnready              int           `envconfig:"OK_TOTAL_UNREADY" default:"3"`
	MaxTotalUnreadyPercent      int           `split_words:"true" default:"45"`
	EnforceMin                  bool          `split_words:"true" default:"true"`
	FreshFor                    time.Duration `split_words:"true" default:"1m"` // a group read longer ago is stale for deletions

	// Priorities is the live map of the expander "priority"; PrioritiesFault says why its
	// newest version is not used.
	Priorities      []cluster.PriorityTier `ignored:"true" json:",omitempty"`
	PrioritiesFault string                 `ignored:"true" json:",omitempty"`
	// Headroom is the room that is to be kept free (groups.yaml).
	Headroom []cluster.Headroom `ignored:"true" json:",omitempty"`
}

// Memory is what one round tells the next. The zero value is a restart: every rule
// is safe with it.
type Memory struct {
	// Unneeded is since when a node's pods could live elsewhere.
	Unneeded map[cluster.NodeName]time.Time `json:"unneeded,omitempty"`
	// Unready is since when a node has been seen not Ready by this agent.
	Unready map[cluster.NodeName]time.Time `json:"unready,omitempty"`
	// Reservations is which group's upcoming machines a pending pod was counted on.
	Reservations Reservations `json:"promised,omitempty"`
	// ReservedMissing is the same for pods that their controller has still to make, by
	// "group owner-UID".
	ReservedMissing map[string]int `json:"promisedMissing,omitempty"`
	// Resized is the last target that was successfully asked for, which a lagging
	// read must not undo (EC2 reads are eventually consistent).
	Resized map[cluster.GroupID]Resized `json:"resized,omitempty"`
	// Backoff is kept by group and cause.
	Backoff []Backoff `json:"backoff,omitempty"`
	// Unregistered is since when an instance has been seen without a Node.
	Unregistered map[cluster.InstanceID]time.Time `json:"unregistered,omitempty"`
	// Draining is since when a node has carried our mark.
	Draining map[cluster.NodeName]time.Time `json:"draining,omitempty"`
	// Emptied is since when a marked node that somebody delays has had nothing to move.
	Emptied map[cluster.NodeName]time.Time `json:"emptied,omitempty"`
	// Deleted is when an instance was successfully told to go: a lagging read that
	// still shows it neither counts it nor its place in the target.
	Deleted map[cluster.InstanceID]time.Time `json:"deleted,omitempty"`
	// OrphanedUpcoming is how many of a group's upcoming machines nobody remembers having asked
	// for, as after a restart.
	OrphanedUpcoming map[cluster.GroupID]int `json:"unremembered,omitempty"`
	// Short is since when a group has had fewer instances than its target.
	Short map[cluster.GroupID]time.Time `json:"short,omitempty"`
	// ShrunkAt is when a machine was last terminated.
	ShrunkAt time.Time `json:"shrunkAt,omitzero"`
	// Consolidation is the replacement of nodes that is thought of or under way.
	Consolidation *Consolidation `json:"saving,omitempty"`
	// ScaleDownAfter is when scale-down may be thought of again, by reason.
	ScaleDownAfter time.Time `json:"scaleDownAfter,omitzero"`
}

// Resized is one accepted resize.
type Resized struct {
	To int       `json:"to"`
	At time.Time `json:"at"`
	// Seen is when a read first showed the target that was asked for. A lower one that
	// is read well after it is somebody else's wish, and no lag.
	Seen time.Time `json:"seen,omitzero"`
}

// Backoff is one group's pause after failures of one cause.
type Backoff struct {
	Group cluster.GroupID `json:"group"`
	Cause cluster.Cause   `json:"cause"`
	Until time.Time       `json:"until"`
	Step  time.Duration   `json:"step"` // the length of this pause; the next is twice as long
	Last  time.Time       `json:"last"` // when the newest failure that counted happened
	Text  string          `json:"text"` // the cloud's own words
}
