package decision

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// DrainStep says how long pods of a priority and above, up to the next step, may take
// to end.
type DrainStep struct {
	Priority int32         `json:"priority"`
	Grace    time.Duration `json:"grace"`
}

// DrainOrder is a list such as "0:60,1000:120" in the form of Cluster Autoscaler's
// --drain-priority-config: pods are evicted step by step, the lowest priority first, and
// each step has its own cap of their grace, in seconds. Sorted by priority.
type DrainOrder []DrainStep

// Decode parses the list; envconfig calls it.
func (o *DrainOrder) Decode(value string) error {
	*o = nil
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		a, b, ok := strings.Cut(item, ":")
		priority, err1 := strconv.ParseInt(a, 10, 32)
		seconds, err2 := strconv.ParseInt(b, 10, 32)
		if !ok || err1 != nil || err2 != nil || seconds < 0 {
			return fmt.Errorf("%q is no step of a drain: write priority:seconds, for example 0:60,1000:120", item)
		}
		if slices.ContainsFunc(*o, func(s DrainStep) bool { return s.Priority == int32(priority) }) {
			return fmt.Errorf("priority %d stands twice", priority)
		}
		*o = append(*o, DrainStep{int32(priority), time.Duration(seconds) * time.Second})
	}
	slices.SortFunc(*o, func(a, b DrainStep) int { return int(a.Priority) - int(b.Priority) })
	return nil
}

// Bound is how much of one extended resource the whole cluster may and must have.
type Bound struct {
	Resource string `json:"resource"`
	Min      int64  `json:"min"`
	Max      int64  `json:"max"`
}

// Bounds is a list such as "nvidia.com/gpu:0:16,amd.com/gpu:2:8", the form of Cluster
// Autoscaler's --gpu-total with the resource's name in place of a cloud's own word.
type Bounds []Bound

// Decode parses the list; envconfig calls it.
func (b *Bounds) Decode(value string) error {
	*b = nil
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		parts := strings.Split(item, ":")
		if len(parts) != 3 || parts[0] == "" {
			return fmt.Errorf("%q is no bound: write resource:min:max, for example nvidia.com/gpu:0:16", item)
		}
		if name := extendedName(parts[0]); name != parts[0] {
			return fmt.Errorf("%q: %q is no resource of a Node: write %s:%s:%s", item, parts[0], name, parts[1], parts[2])
		}
		lo, err1 := strconv.ParseInt(parts[1], 10, 64)
		hi, err2 := strconv.ParseInt(parts[2], 10, 64)
		if err1 != nil || err2 != nil || lo < 0 || hi < lo {
			return fmt.Errorf("%q: write whole numbers, the smaller first, for example nvidia.com/gpu:0:16", item)
		}
		*b = append(*b, Bound{parts[0], lo, hi})
	}
	return nil
}

// extendedName is the name of an extended resource that a name without a domain was meant for.
// Cluster Autoscaler's --gpu-total takes a cloud's word for a kind of GPU there.
func extendedName(name string) string {
	switch {
	case strings.Contains(name, "/"), strings.HasPrefix(name, "hugepages-"):
		return name
	case strings.Contains(strings.ToLower(name), "amd"):
		return "amd.com/gpu"
	}
	return "nvidia.com/gpu"
}

// Policy is what an operator may set, with the field's defaults; the environment
// names are AUTOSCALER_SCALING_*.
type Policy struct {
	Expander                    string                    `default:"least-waste" form:"expanders" desc:"Which group is grown: least-waste, price, priority, most-pods, least-nodes, random, or several, comma-separated."`
	RandomSeed                  uint64                    `split_words:"true" default:"1" range:"any" desc:"Seed of the expander random."`
	MaxNodesTotal               int                       `split_words:"true" default:"0" range:"0..1000000" desc:"Most nodes of the whole cluster, control plane included; 0: no limit."`
	MaxCoresTotal               int64                     `split_words:"true" default:"0" range:"0..16777216" desc:"Most cores of the whole cluster; 0: no limit."`
	MaxMemoryTotal              int64                     `split_words:"true" default:"0" range:"0..16777216" unit:"GiB" desc:"Most memory of the whole cluster in GiB; 0: no limit."`
	MinCoresTotal               int64                     `split_words:"true" default:"0" range:"0..16777216" desc:"Fewest cores of the whole cluster, which scale-down keeps."`
	MinMemoryTotal              int64                     `split_words:"true" default:"0" range:"0..16777216" unit:"GiB" desc:"Least memory of the whole cluster in GiB, which scale-down keeps."`
	GPUTotal                    Bounds                    `envconfig:"GPU_TOTAL" desc:"Bounds of extended resources over the whole cluster, such as nvidia.com/gpu:0:16, comma-separated."`
	BalanceSimilarNodeGroups    bool                      `split_words:"true" default:"false" desc:"Whether new machines are spread evenly over similar groups."`
	BalanceIgnoreLabels         []string                  `split_words:"true" form:"label" desc:"More labels in which similar groups may differ, comma-separated."`
	BalanceLabels               []string                  `split_words:"true" form:"label" desc:"Compare these labels only; groups are similar that agree in them."`
	ExpendablePodsCutoff        int32                     `split_words:"true" default:"-10" range:"-2147483648..2147483647" desc:"Pods of a lower priority bring no machine and keep none."`
	NewPodDelay                 time.Duration             `split_words:"true" default:"0s" range:"0s..24h" desc:"Age before which no machine is bought for a pod."`
	BurstHold                   time.Duration             `split_words:"true" default:"15s" range:"0s..10m" desc:"How long the pods that come after the first purchase of a burst may wait to be bought for together; 0s: not at all."`
	Patience                    time.Duration             `default:"1m" range:"0s..1h" desc:"How long a pod may wait, where pods come one by one, so that the machine bought for them is fuller (rule U30); 0s: not at all."`
	MaxNodeProvisionTime        time.Duration             `split_words:"true" default:"15m" range:"1s..24h" desc:"How long an instance may take to become a Node before it is ended, and a young Node to become what its template says."`
	MaxNodeStartupTime          time.Duration             `split_words:"true" default:"15m" range:"0s..24h" desc:"How long a new Node may take to become Ready before it counts as unready."`
	StartupTaints               []string                  `split_words:"true" form:"taint" desc:"Keys of taints that young nodes lose by themselves and that no template has, whoever sets them, comma-separated."`
	StatusTaints                []string                  `split_words:"true" form:"taint" desc:"Keys of taints that tell the state of a node: no template has them, and pods never count on their end, comma-separated."`
	BackoffInitial              time.Duration             `split_words:"true" default:"5m" range:"0s..168h" desc:"First pause of a group after a failure to start machines; it doubles with each further one."`
	BackoffMax                  time.Duration             `split_words:"true" default:"30m" range:"0s..168h" desc:"Longest pause of a group after failures."`
	BackoffReset                time.Duration             `split_words:"true" default:"3h" range:"0s..8760h" desc:"Time without failures after which pauses start small again."`
	ScaleDown                   bool                      `split_words:"true" default:"true" desc:"Whether nodes that nothing needs are removed."`
	UtilizationThreshold        float64                   `split_words:"true" default:"0.5" range:"0..1" desc:"Share of cpu or memory requested above which a node stays."`
	GPUUtilizationThreshold     float64                   `envconfig:"GPU_UTILIZATION_THRESHOLD" default:"0.5" range:"0..1" desc:"The same for nodes with GPUs, of which only the GPUs count."`
	UnneededFor                 time.Duration             `split_words:"true" default:"10m" range:"0s..8760h" desc:"How long a node must be unneeded before it goes."`
	ScaleDownUnready            bool                      `split_words:"true" default:"true" desc:"Whether nodes that are not Ready are removed."`
	UnreadyFor                  time.Duration             `split_words:"true" default:"20m" range:"0s..8760h" desc:"How long a node must be not Ready before it goes."`
	DelayAfterAdd               time.Duration             `split_words:"true" default:"10m" range:"0s..8760h" desc:"Pause of scale-down after a scale-up."`
	DelayAfterFailure           time.Duration             `split_words:"true" default:"3m" range:"0s..8760h" desc:"Pause of scale-down after a removal that failed."`
	DelayAfterTaint             time.Duration             `split_words:"true" default:"5s" range:"0s..1h" desc:"Wait between the mark on a node and the first eviction from it."`
	MaxEmptyAtOnce              int                       `split_words:"true" default:"10" range:"0..100000" desc:"Most empty nodes that go at once."`
	MaxDrainAtOnce              int                       `split_words:"true" default:"10" range:"0..100000" desc:"Most nodes that are drained at once."`
	MaxPodEvictionTime          time.Duration             `split_words:"true" default:"2m" range:"0s..168h" desc:"How long an eviction is tried, beyond the pod's own grace period."`
	MaxGracefulTermination      time.Duration             `split_words:"true" default:"10m" range:"0s..168h" desc:"Most of a pod's own grace period that a drain grants."`
	DrainPriority               DrainOrder                `envconfig:"DRAIN_PRIORITY_CONFIG" desc:"Order of evictions as priority:seconds, such as 0:60,1000:120: lower priorities first, each with its cap of grace."`
	EvictDaemonsOccupied        bool                      `envconfig:"DAEMONSET_EVICTION_FOR_OCCUPIED_NODES" default:"true" desc:"Whether DaemonSet pods are asked to end before their drained node goes."`
	EvictDaemonsEmpty           bool                      `envconfig:"DAEMONSET_EVICTION_FOR_EMPTY_NODES" default:"false" desc:"The same for nodes with DaemonSet pods only."`
	NodeDeletionDelayTimeout    time.Duration             `split_words:"true" default:"2m" range:"0s..168h" desc:"How long a drained node with a delay-deletion annotation is kept."`
	Consolidate                 string                    `default:"priced" oneof:"priced,always,off" desc:"Replace nodes by fewer or cheaper machines: priced (only where prices are known), always, or off."`
	ConsolidateAfter            time.Duration             `split_words:"true" default:"5m" range:"0s..8760h" desc:"How long a saving must be real, without a break."`
	ConsolidateSaving           float64                   `split_words:"true" default:"0.15" range:"0..<1" desc:"Least share of the price that a replacement must save."`
	ConsolidatePodCost          float64                   `split_words:"true" default:"0.75" range:"0..1000" desc:"What moving a pod counts for, as a share of what a pod costs in an hour: a saving must be real until it has come to that."`
	Drift                       bool                      `default:"false" desc:"Whether nodes that are not what their group would start today (image, user data and so on) are replaced."`
	MaxNodeAge                  time.Duration             `split_words:"true" default:"0s" range:"1h..87600h" zero:"never" desc:"Age at which a node is replaced, up to a tenth earlier so that machines of one burst do not end together; 0s: never."`
	RepairAfter                 time.Duration             `split_words:"true" default:"0s" range:"1m..8760h" zero:"never" desc:"How long a node must be sick (not Ready, or one of the repair conditions) before it is replaced; 0s: never."`
	RepairConditions            cluster.RepairConditions  `split_words:"true" desc:"Node conditions that make a node sick, with a time or without, such as KernelDeadlock,DiskPressure:30m,Ready=False:10m."`
	RepairMaxSick               int                       `split_words:"true" default:"20" range:"0..100" desc:"Share of sick nodes of a group or of the cluster in percent above which none is replaced for it, more than one sick node provided."`
	ReplaceAtMax                string                    `split_words:"true" default:"wait" oneof:"wait,empty-first" desc:"What a node does that is to be replaced while its group is at its maximum: wait, or empty-first (its pods wait then)."`
	ReplaceDrainTime            time.Duration             `split_words:"true" default:"15m" range:"0s..8760h" desc:"How long the drain of a node that is replaced may last beyond the pods' own grace period before it is given up."`
	ReplaceDrainOverdue         string                    `split_words:"true" default:"give-up" oneof:"give-up,force" desc:"A drain that does not end in that time: give-up (the node stays), or force (its machine ends with the pods that are left)."`
	ReplaceHaltedGrowth         string                    `split_words:"true" default:"last" oneof:"last,never" desc:"Whether a group grows of which the rollout is halted: last (where no other group takes a pod that waits), or never."`
	ReplaceSettleTime           time.Duration             `split_words:"true" default:"15m" range:"1m..168h" desc:"How long the pods of the first machine of a new source must have been Ready, without a restart, before other nodes follow."`
	ReplaceCheckpoints          cluster.Checkpoints       `split_words:"true" desc:"Shares of a group at which its rollout waits, and for how long, such as 10%:1h,50%:4h."`
	ReplaceHealthCondition      string                    `split_words:"true" form:"condition" desc:"Condition that somebody else sets to True on a machine of a new source that is well; without it no other node follows."`
	DisruptionBudgets           cluster.DisruptionBudgets `split_words:"true" desc:"How many nodes of the cluster may go at once, why and when, such as 10% of drifted at 0 22 * * * for 6h in Europe/Berlin."`
	MaxBulkSoftTaintCount       int                       `split_words:"true" default:"10" range:"0..100000" desc:"Most nodes of one round that the scheduler is told to avoid; 0: none."`
	SkipNodesWithSystemPods     bool                      `split_words:"true" default:"true" desc:"Whether a pod of kube-system keeps its node, unless a budget or an annotation lets it go."`
	SkipNodesWithLocalStorage   bool                      `split_words:"true" default:"true" desc:"Whether a pod with a local volume (emptyDir, hostPath) keeps its node."`
	SkipNodesWithCustomPods     bool                      `envconfig:"SKIP_NODES_WITH_CUSTOM_CONTROLLER_PODS" default:"true" desc:"Whether a pod of a custom controller (a Workflow, a TaskRun, a runner) keeps its node."`
	IgnoreDaemonSetsUtilization bool                      `envconfig:"IGNORE_DAEMONSETS_UTILIZATION" default:"false" desc:"Whether DaemonSet pods are left out of the share that is requested."`
	OKTotalUnready              int                       `envconfig:"OK_TOTAL_UNREADY" default:"3" range:"0..1000000" desc:"So many unready nodes never stop scale-down."`
	MaxTotalUnreadyPercent      int                       `split_words:"true" default:"45" range:"0..100" desc:"Share of unready nodes above which nothing is removed, in percent."`
	EnforceMin                  bool                      `split_words:"true" default:"true" desc:"Whether a group below its minimum is grown to it."`
	FreshFor                    time.Duration             `split_words:"true" default:"1m" range:"0s..24h" desc:"Age of a group's facts from which nothing in it is removed."`

	// Priorities is the live map of the expander "priority"; PrioritiesFault says why its
	// newest version is not used.
	Priorities      []cluster.PriorityTier `ignored:"true" json:",omitempty"`
	PrioritiesFault string                 `ignored:"true" json:",omitempty"`
	// Rollouts are what operators ordered for the rollouts of groups; Halts the rollouts that this leader, or one before it,
	// wrote down as halted.
	Rollouts cluster.RolloutOrders `ignored:"true" json:",omitempty"`
	Halts    []Halt                `ignored:"true" json:",omitempty"`
	// Headroom is the room that is to be kept free (groups.yaml).
	Headroom []cluster.Headroom `ignored:"true" json:",omitempty"`
}

// The values of Policy.Consolidate. ConsolidatePriced consolidates where every group concerned has a price; ConsolidateAlways also
// counts machines of one group where none has.
const (
	ConsolidateOff    = "off"
	ConsolidatePriced = "priced"
	ConsolidateAlways = "always"
)

// Consolidates tells whether nodes are replaced because fewer or cheaper machines would do.
func (p *Policy) Consolidates() bool {
	return p.ScaleDown && (p.Consolidate == ConsolidatePriced || p.Consolidate == ConsolidateAlways)
}
