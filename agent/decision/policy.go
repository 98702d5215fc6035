// Package plan decides: Decide(Snapshot, Memory, Policy) is a function of three
// values that returns a Plan and the next Memory.
//
// Floor 1. Equal inputs give equal outputs, whatever the order of slices. It
// refuses to do I/O, to read a clock (time is Snapshot.Now), to use global chance,
// and to delete anything on stale facts. Effects are values: agent/act carries
// them out, re-checking each.
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
		lo, err1 := strconv.ParseInt(parts[1], 10, 64)
		hi, err2 := strconv.ParseInt(parts[2], 10, 64)
		if err1 != nil || err2 != nil || lo < 0 || hi < lo {
			return fmt.Errorf("%q: write whole numbers, the smaller first, for example nvidia.com/gpu:0:16", item)
		}
		*b = append(*b, Bound{parts[0], lo, hi})
	}
	return nil
}

// Policy is what an operator may set, with the field's defaults; the environment
// names are AUTOSCALER_SCALING_*.
type Policy struct {
	Expander                    string        `default:"least-waste"`                      // least-waste, price, priority, most-pods, least-nodes, random, or several: the next decides what the one before leaves open
	RandomSeed                  uint64        `split_words:"true" default:"1" range:"any"` // of the expander random
	MaxNodesTotal               int           `split_words:"true" default:"0"`             // whole cluster, control plane included; 0: no limit
	MaxCoresTotal               int64         `split_words:"true" default:"0"`             // cores; 0: no limit
	MaxMemoryTotal              int64         `split_words:"true" default:"0"`             // GiB; 0: no limit
	MinCoresTotal               int64         `split_words:"true" default:"0"`             // cores; scale-down keeps them
	MinMemoryTotal              int64         `split_words:"true" default:"0"`             // GiB; scale-down keeps them
	GPUTotal                    Bounds        `envconfig:"GPU_TOTAL"`                      // nvidia.com/gpu:0:16, of any extended resource; several, comma-separated
	BalanceSimilarNodeGroups    bool          `split_words:"true" default:"false"`
	BalanceIgnoreLabels         []string      `split_words:"true"` // more labels in which similar groups may differ
	BalanceLabels               []string      `split_words:"true"` // when given, groups are similar that agree in these labels
	ExpendablePodsCutoff        int32         `split_words:"true" default:"-10" range:"any"`
	NewPodDelay                 time.Duration `split_words:"true" default:"0s"`
	MaxNodeProvisionTime        time.Duration `split_words:"true" default:"15m" range:"1s.."`
	MaxNodeStartupTime          time.Duration `split_words:"true" default:"15m"`
	BackoffInitial              time.Duration `split_words:"true" default:"5m"`
	BackoffMax                  time.Duration `split_words:"true" default:"30m"`
	BackoffReset                time.Duration `split_words:"true" default:"3h"`
	ScaleDown                   bool          `split_words:"true" default:"true"`
	UtilizationThreshold        float64       `split_words:"true" default:"0.5" range:"0..1"`
	GPUUtilizationThreshold     float64       `envconfig:"GPU_UTILIZATION_THRESHOLD" default:"0.5" range:"0..1"` // of nodes that offer GPUs: only these count there
	UnneededFor                 time.Duration `split_words:"true" default:"10m" range:"0s.."`
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
	Consolidate                 string        `default:"off" oneof:"priced,always,off"`         // replace nodes by fewer or cheaper machines: priced (only where prices are known), always, or off
	ConsolidateAfter            time.Duration `split_words:"true" default:"30m"`                // how long a saving must be real
	ConsolidateSaving           float64       `split_words:"true" default:"0.15" range:"0..<1"` // the least share of the price that it must save
	MaxBulkSoftTaintCount       int           `split_words:"true" default:"10"`                 // soft taints changed in one round; 0: none is put
	SkipNodesWithSystemPods     bool          `split_words:"true" default:"true"`
	SkipNodesWithLocalStorage   bool          `split_words:"true" default:"true"`
	IgnoreDaemonSetsUtilization bool          `envconfig:"IGNORE_DAEMONSETS_UTILIZATION" default:"false"`
	OKTotalUnready              int           `envconfig:"OK_TOTAL_UNREADY" default:"3"`
	MaxTotalUnreadyPercent      int           `split_words:"true" default:"45" range:"0..100"`
	EnforceMin                  bool          `split_words:"true" default:"true"`
	FreshFor                    time.Duration `split_words:"true" default:"1m"` // a group read longer ago is stale for deletions

	// Priorities is the live map of the expander "priority"; PrioritiesFault says why its
	// newest version is not used.
	Priorities      []cluster.PriorityTier `ignored:"true" json:",omitempty"`
	PrioritiesFault string                 `ignored:"true" json:",omitempty"`
	// Headroom is the room that is to be kept free (groups.yaml).
	Headroom []cluster.Headroom `ignored:"true" json:",omitempty"`
}
