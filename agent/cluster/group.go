package cluster

import (
	"net/netip"
	"time"
)

// NodeGroup is everything that one read of the cloud tells about a group of
// interchangeable instances. A provider returns facts; it decides nothing.
type NodeGroup struct {
	ID        GroupID    `json:"id"`
	Min       int        `json:"min"`
	Max       int        `json:"max"`
	Target    int        `json:"target"` // the size that the cloud was asked for
	Template  Template   `json:"template"`
	Instances []Instance `json:"instances,omitempty"`
	Options   Options    `json:"options"`
	// Provider is the one of several that the group is of; empty where there is one.
	Provider string `json:"provider,omitempty"`

	// Declared tells that the group stands in a file of the operator and nowhere in the
	// cloud: that a read lists it says nothing about which cloud was read.
	Declared bool `json:"declared,omitempty"`

	// Stale says why target, bounds and instances are old or incomplete: the last read of
	// them failed or was partial. Empty means that they were read whole at ReadAt. A stale
	// group is still counted on; nothing in it is grown or deleted.
	Stale string `json:"stale,omitempty"`
	// TemplateStale says the same of Template and Quota. The group is not grown; its
	// machines are seen, admitted and ended as ever.
	TemplateStale string `json:"templateStale,omitempty"`
	// FailuresStale says the same of Failures. It holds nothing: what does not come is
	// noticed by its time.
	FailuresStale string `json:"failuresStale,omitempty"`
	// Paused says why the cloud itself will not start instances now (for example an
	// Auto Scaling group whose Launch process is suspended). Empty: it will.
	Paused string `json:"paused,omitempty"`
	// Keeps says why the cloud would refuse now to end an instance that is named (for
	// example a MachineDeployment that is being rolled out). Empty: it would not.
	Keeps string `json:"keeps,omitempty"`
	// Replacing says what else replaces the machines of the group now (an instance refresh of
	// an Auto Scaling group). Empty: nothing does, as far as the provider can tell.
	Replacing string `json:"replacing,omitempty"`
	// ReplacingStale says why that is not known. No machine begins to be replaced for drift or
	// age; what has begun goes on.
	ReplacingStale string `json:"replacingStale,omitempty"`
	// Busy says what the cloud has to finish before it takes another change of the group,
	// be it growth or a removal (Magnum does one operation on a cluster at a time). What
	// was asked for is coming all the same. Empty: it takes one now.
	Busy string `json:"busy,omitempty"`
	// Pause is an operator's wish that the group is left alone; nil: none.
	Pause *Pause `json:"pause,omitempty"`
	// Price is what one machine costs per hour, in whatever currency the groups share;
	// 0: not known.
	Price float64 `json:"price,omitempty"`
	// PriceSource says where Price comes from, in words; empty: there is none.
	PriceSource string `json:"priceSource,omitempty"`
	// PriceComputed tells that Price was computed from the size of the machine: it orders
	// groups, and is no bill.
	PriceComputed bool `json:"priceComputed,omitempty"`
	// SpotTypes is how many types a group may start on the spot market; 0: it starts none there, or does not tell.
	SpotTypes int `json:"spotTypes,omitempty"`
	// Priority is the group's own for the expander "priority"; nil: the live map says.
	Priority *int `json:"priority,omitempty"`
	// Balance names the set of groups that get machines evenly; empty: none by name.
	Balance string `json:"balance,omitempty"`
	// Pool is the entry of groups.yaml that made the group, and PoolMax the most machines of all groups of
	// it together; empty: an operator made it.
	Pool    string `json:"pool,omitempty"`
	PoolMax int    `json:"poolMax,omitempty"`
	// Quota names the allowance of the account that the group's machines are counted
	// against: a refusal for quota concerns every group with the same name. Empty: one
	// allowance for the whole account.
	Quota string `json:"quota,omitempty"`
	// Failures are the cloud's own reports of instances that it could not start,
	// newest first, each once. Only failures after the last success are listed.
	Failures []Failure `json:"failures,omitempty"`
	// Exposed says how pods of its next machines reach the cloud's metadata service, which has user data and credentials; for check.
	Exposed string `json:"-"`
	// Warnings are things an operator should mend and that do not stop the group.
	Warnings []string  `json:"warnings,omitempty"`
	ReadAt   time.Time `json:"readAt"`
	// NamesReadAt is when the names and addresses of the instances were read, where that was
	// before ReadAt; zero: at ReadAt.
	NamesReadAt time.Time `json:"namesReadAt,omitzero"`
}

// Unmade tells a group of a pool that the cloud has nothing of yet: it is there for decisions, and no group to report on.
func (g *NodeGroup) Unmade() bool {
	return g.Pool != "" && g.Declared && g.Target == 0 && len(g.Instances) == 0
}

// PoolUse is what the groups of a pool have together.
type PoolUse struct {
	Name     string `json:"name"`
	Max      int    `json:"max"`
	Machines int    `json:"machines"` // members
	Made     int    `json:"made"`     // groups that the cloud has
	Groups   int    `json:"groups"`
	Template string `json:"template,omitempty"` // why that of one is not known
}

// Pools sums up the pools of groups, in their order.
func Pools(groups []NodeGroup) (out []PoolUse) {
	at := map[string]int{}
	for i := range groups {
		g := &groups[i]
		if g.Pool == "" {
			continue
		}
		k, ok := at[g.Pool]
		if !ok {
			k = len(out)
			at[g.Pool], out = k, append(out, PoolUse{Name: g.Pool, Max: g.PoolMax})
		}
		p := &out[k]
		if p.Groups++; !g.Unmade() {
			p.Made++
		}
		if p.Template == "" {
			p.Template = g.Template.Unknown
		}
		for _, in := range g.Instances {
			if in.Member {
				p.Machines++
			}
		}
	}
	return out
}

// WitnessedAt is when the names and addresses of the instances were read: no witness of a
// certificate is younger.
func (g *NodeGroup) WitnessedAt() time.Time {
	if g.NamesReadAt.IsZero() {
		return g.ReadAt
	}
	return g.NamesReadAt
}

// Options are per-group settings found on the group itself (tags
// k8s.io/cluster-autoscaler/node-template/autoscaling-options/*); a zero pointer
// means that the agent's own setting holds.
type Options struct {
	ScaleDownUtilization  *float64       `json:"scaleDownUtilization,omitempty"`
	ScaleDownUnneededTime *time.Duration `json:"scaleDownUnneededTime,omitempty"`
	ScaleDownUnreadyTime  *time.Duration `json:"scaleDownUnreadyTime,omitempty"`
	MaxNodeProvisionTime  *time.Duration `json:"maxNodeProvisionTime,omitempty"`
	MaxNodeStartupTime    *time.Duration `json:"maxNodeStartupTime,omitempty"`
	// ScaleDownGPUUtilization holds for nodes that offer GPUs.
	ScaleDownGPUUtilization     *float64 `json:"scaleDownGPUUtilization,omitempty"`
	IgnoreDaemonSetsUtilization *bool    `json:"ignoreDaemonSetsUtilization,omitempty"`
	// Drift, MaxNodeAge and RepairAfter say which nodes are replaced.
	Drift       *bool          `json:"drift,omitempty"`
	MaxNodeAge  *time.Duration `json:"maxNodeAge,omitempty"`
	RepairAfter *time.Duration `json:"repairAfter,omitempty"`
	// ReplaceDrainTime is how long the drain of a node that is replaced may last.
	ReplaceDrainTime *time.Duration `json:"replaceDrainTime,omitempty"`
	// Budgets say how many nodes of the group may be disrupted at once, and when; nil: the default.
	Budgets *DisruptionBudgets `json:"disruptionBudgets,omitempty"`
}

// Pause says that nothing is to be grown or deleted in a group, why, and until when;
// zero: until it is taken back.
type Pause struct {
	Why   string    `json:"why,omitempty"`
	Until time.Time `json:"until,omitzero"`
}

// PriorityTier is one entry of Cluster Autoscaler's priority map: groups whose ID one
// of the regular expressions finds have this priority; a higher one is taken first.
type PriorityTier struct {
	Priority int      `json:"priority"`
	Patterns []string `json:"patterns"`
}

// Template describes the node that the group's next instance becomes. It is keyed
// by Spec (launch template and version, instance types, user data digest), never
// by time, so that a change of the group invalidates what was learnt from its old
// nodes (kubernetes/autoscaler#6452).
type Template struct {
	Spec        string            `json:"spec"`
	Capacity    Resources         `json:"capacity"`
	Allocatable Resources         `json:"allocatable"`
	Labels      map[string]string `json:"labels,omitempty"`
	Taints      []Taint           `json:"taints,omitempty"`
	// Zones are the zones of which the cloud picks one for the next machine, where it picks
	// among several; empty: Labels say the zone, or it is not known. ZoneLabels are the labels
	// of a Node that then hold the name of its zone.
	Zones      []string `json:"zones,omitempty"`
	ZoneLabels []string `json:"zoneLabels,omitempty"`
	// VolumeLimits is Node.VolumeLimits of the coming node, as its group's nodes show it.
	VolumeLimits map[string]int64 `json:"volumeLimits,omitempty"`
	// Devices are those of the coming node, as its group's nodes show them or the operator tells; nil: none are known.
	Devices *Devices `json:"devices,omitempty"`
	// Source is what the next instance is started from; nil: the provider does not tell it.
	Source Spec `json:"source,omitempty"`
	// Expected are the labels and taints that tags or groups.yaml promise, as properties.
	Expected Spec `json:"expected,omitempty"`
	// Unknown says why the template could not be resolved; such a group is never
	// grown. Empty: the template is complete.
	Unknown string `json:"unknown,omitempty"`
	// ByNodes tells that the provider has no template, so that what the group's nodes show is it.
	ByNodes bool `json:"byNodes,omitempty"`
}

// Phase is where an instance is in its life, as the cloud tells it. The zero
// value is PhaseUnknown: nothing may be done about such an instance.
type Phase string

// The phases of an instance.
const (
	PhaseUnknown  Phase = ""         // the cloud gave no clear answer
	PhasePending  Phase = "pending"  // asked for, being started
	PhaseRunning  Phase = "running"  // the machine runs
	PhaseStopped  Phase = "stopped"  // exists, does not run (stopping, stopped, standby): alive for the reaper
	PhaseDeleting Phase = "deleting" // on its way out, may still run: alive for the reaper
	PhaseGone     Phase = "gone"     // the cloud says positively that it exists no more (EC2: terminated)
	PhaseFailed   Phase = "failed"   // the cloud could not start it; see Failure
)

// Instance is one machine as the cloud's inventory tells it. Names and Addresses
// are the witness of serving-certificate requests (CSR rules R11-R14).
type Instance struct {
	ID      InstanceID `json:"id"`
	Phase   Phase      `json:"phase"`
	Created time.Time  `json:"created"` // launch time; zero: the cloud does not tell it
	Type    string     `json:"type,omitempty"`
	Zone    string     `json:"zone,omitempty"`
	// NodeNames are the names that a Node of this instance may carry.
	NodeNames []string `json:"nodeNames,omitempty"`
	// Names are all DNS names that belong to the instance, NodeNames included.
	Names []string `json:"names,omitempty"`
	// Addresses are the IP addresses in use on its interfaces, unmapped, no zone.
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// Member tells that the instance belongs to its group now (PhaseGone instances
	// and those listed only by tag do not).
	Member bool `json:"member"`
	// Runs tells that the cloud says that the machine itself runs, whatever its Phase says
	// (EC2 "running" in an Auto Scaling group's Standby or Terminating:Wait): its kubelet
	// works, and renews its certificates.
	Runs bool `json:"runs,omitempty"`
	// Protected tells that the cloud is told not to pick it for its own scale-in.
	Protected bool     `json:"protected,omitempty"`
	Failure   *Failure `json:"failure,omitempty"`
	// Source is what the instance was started from; nil: the provider does not tell it. Origin names it to the cloud.
	Source Spec   `json:"source,omitempty"`
	Origin Origin `json:"origin,omitzero"`
	// Interruption tells that the cloud ends the machine of its own accord and drains
	// nothing; its Phase is PhaseDeleting then. nil: it does not, or whoever does drains
	// the node (Cluster API), or it is not known.
	Interruption *Interruption `json:"interruption,omitempty"`
}

// Origin names what an instance was started from to the cloud: the ID of a launch template and its version. The zero value: the
// cloud has no name for it, or does not tell it.
type Origin struct {
	Template string `json:"template"`
	Version  string `json:"version"`
}

// Interruption is the cloud's notice that it ends a machine (EC2: "Spot Instance
// interruption notices", two minutes before).
type Interruption struct {
	Why string    `json:"why"`         // in the cloud's words
	By  time.Time `json:"by,omitzero"` // when the machine may end; zero: not known
}

// Cause sorts failures by what would heal them. Backoff is kept per group and
// cause (rules 7 of field/scaling: quota is not stockout is not join failure).
type Cause string

// The causes of a failure to start or to join.
const (
	CauseOther    Cause = "other"
	CauseCapacity Cause = "capacity" // the cloud has no such instance now
	CauseQuota    Cause = "quota"    // the account may not have more
	CauseInvalid  Cause = "invalid"  // the group's configuration is wrong: an operator must mend it
	CauseRefused  Cause = "refused"  // the call itself: credentials, rights, no such group; once that is mended nothing should wait
	CauseNoJoin   Cause = "no-join"  // the instance runs and never became a Node
)

// Failure is one report of an instance that could not be started, in the cloud's
// own words.
type Failure struct {
	Cause Cause     `json:"cause"`
	Text  string    `json:"text"`
	Zone  string    `json:"zone,omitempty"`
	At    time.Time `json:"at"`
}
